"""What the commands share: arguments, the flags of DATA and of settings, and how data and program are got from them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from archehr.data.case import DataError
from archehr.data.dataset import Dataset, read_dataset
from archehr.data.readers import READERS, what_data_is
from archehr.data.reading.reader import ReadOptions, parse_columns, parse_note_type
from archehr.terminal.flags import in_a_name, with_options
from archehr.terminal.flags import option as _option

DataArg = Annotated[str, typer.Argument(metavar="DATA", help=f"{what_data_is()}; or sample/dev, sample/test")]
ProgramOpt = Annotated[
    str | None,
    typer.Option(
        help="default (instructions, with three example questions for stage 1), zero_shot (the instructions alone), "
        "handwritten (the published system's wording), extractive (no LM), extractive-dev and extractive-test "
        "(fitted on that sample alone), or a program file [default; extractive without --lm]"
    ),
]
CasesOpt = Annotated[str | None, typer.Option(help="only these cases, for example 1,4-9")]
KeyOpt = Annotated[Path | None, typer.Option(help="the key file [the one beside the data]")]
JsonOpt = Annotated[bool, typer.Option("--json", help="print JSON")]
OutOpt = Annotated[Path | None, typer.Option(help="the run folder [runs/DATA-PROGRAM-LM-OPTIONS]")]
DemosFromOpt = Annotated[
    str | None, typer.Option(metavar="DATA", help="the data that fills the demos of a published program file")
]
NoAbstainOpt = Annotated[
    bool, typer.Option("--no-abstain", help="answer in any case, even where the note seems to say nothing on it")
]
PresetOpt = Annotated[str | None, typer.Option(help="seed or default, instead of the program's own settings")]

# What the model-based scores need (metrics.components.Resources).
BertscoreOpt = Annotated[str | None, typer.Option(help="distilbert-base-uncased, a name or a folder")]
AlignscoreOpt = Annotated[Path | None, typer.Option(help="AlignScore-base.ckpt")]
RobertaOpt = Annotated[str | None, typer.Option(help="roberta-base, a name or a folder")]
UmlsOpt = Annotated[Path | None, typer.Option(help="a QuickUMLS index of your UMLS")]
SpacyOpt = Annotated[str, typer.Option(help="the spaCy model for MEDCON")]


LocalOnlyOpt = Annotated[
    bool, typer.Option(envvar="ARCHEHR_LOCAL_ONLY", help="download no model that --bertscore-model and the like name")
]


@dataclass
class DataOptions:
    """The options that every command which reads DATA shares; the door makes flags of the fields."""

    format: str | None = _option(None, f"what DATA is, instead of by content: {', '.join(r.name for r in READERS)}")
    columns: str | None = _option(None, "what the table calls its columns, for example note=TEXT,message=Q")
    messages: Path | None = _option(None, "a table of patients' messages [messages.csv beside notes without them]")
    note_type: str | None = _option(None, "only notes of these types, for example 18842-5 (LOINC discharge summary)")
    skip_bad: bool = _option(False, "leave out what cannot be read, and list it, instead of stopping")
    max_mb: float = _option(5.0, "the largest note; a packed file may unpack to this and 100 times its size")

    def read_options(self) -> ReadOptions:
        """As the readers take them. Raises DataError."""
        return ReadOptions(
            format=self.format,
            columns=parse_columns(self.columns),
            messages=self.messages,
            note_type=parse_note_type(self.note_type),
            skip_bad=self.skip_bad,
            max_mb=self.max_mb,
        )


@dataclass
class SettingsOptions:
    """The settings of a program that a command can change; the others are in program files."""

    cut: int | None = _option(None, "a sentence scored at least this (1-5) is evidence [the program's own]")
    relaxed_cut: int | None = _option(None, "used where no sentence reaches the cut [the program's own]")
    answer_words: int | None = _option(None, "most words of an answer [the program's own; 75]")
    temperature: float | None = _option(None, "sampling temperature of every stage [the program's own]")
    views: str | None = _option(
        None,
        "ways of asking for evidence that vote: score,answer_first*2; score_b is score once more, with the LM of --lm "
        "score_b=NAME or demos of its own [the program's own]",
    )
    samples: str | None = _option(
        None, "replies of which the one most like the others is kept: reformulate=3,generate=5 [the program's own]"
    )
    verify: str | None = _option(
        None, "off, flag or revise: judge each answer sentence by what it cites [the program's own]"
    )

    def changes(self) -> dict[str, Any]:
        """What was asked for, as load_program takes it. Raises DataError."""
        from archehr.program.settings import parse_samples, parse_views

        read = {"views": parse_views, "samples": parse_samples}
        return {name: read.get(name, lambda value: value)(value) for name, value in self._given().items()}

    def title(self) -> str | None:
        """What was asked for, for the name of a folder: other settings are another run."""
        return in_a_name(self._given())

    def _given(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


def with_data_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command a flag for every field of DataOptions; it receives them as the keyword `data_options`."""
    return with_options(command, DataOptions, "data_options")


def with_settings_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command a flag for every field of SettingsOptions; it receives them as the keyword `settings`."""
    return with_options(command, SettingsOptions, "settings")


def keep_offline(local_only: bool) -> None:
    """With --local-only nothing leaves this machine, whether or not an LM is asked, and the models of the scores come
    from disk or not at all. Before transformers is imported."""
    if local_only:
        os.environ |= {"ARCHEHR_LOCAL_ONLY": "1", "HF_HUB_OFFLINE": "1"}


def say(line: str) -> None:
    """Progress and notices go to stderr; stdout carries results."""
    typer.echo(line, err=True)


def read_data(
    data: str, key: Path | None = None, wanted: str | None = None, options: DataOptions | None = None
) -> Dataset:
    """DATA with the cases wanted; what the user should know of its reading goes to stderr."""
    read = read_dataset(data, key, options.read_options() if options else None)
    for note in read.notes:
        say(note)
    return read.only(wanted)


def load(
    name: str | None,
    lm: Any,
    preset: str | None = None,
    demos_from: str | None = None,
    *,
    no_abstain: bool = False,
    settings: SettingsOptions | None = None,
) -> Any:
    """The program asked for, else the default with an LM and extractive without, with what of its settings is asked
    for."""
    from archehr.program.prompts.program_file import load_program
    from archehr.program.settings import PRESETS

    if preset is not None and preset not in PRESETS:
        raise DataError(f"--preset {preset}: there are {', '.join(PRESETS)}")
    filling = read_data(demos_from).cases if demos_from else None
    name = name or ("default" if lm else "extractive")
    program = load_program(name, PRESETS[preset] if preset else None, filling)
    changes = (settings.changes() if settings else {}) | ({"abstain": False} if no_abstain else {})
    if not program.asks_lm and (asking := [name for name in ("views", "samples") if name in changes]):
        raise DataError(f"--{asking[0]}: that is a way of asking an LM; name one with --lm")
    if changes:
        program.use_settings(program.settings.changed(changes))
    if lm is not None and not program.asks_lm:
        say(f"the program {name} asks no LM: --lm is not used")
    return program
