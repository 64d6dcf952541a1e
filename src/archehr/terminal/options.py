"""What the commands share: arguments, the flags of an LM, and how data, LM and program are got from them."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from archehr.data.case import DataError
from archehr.data.dataset import Dataset, read_dataset
from archehr.data.readers import READERS, what_data_is
from archehr.data.reading.reader import ReadOptions, parse_columns, parse_note_type

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
OutOpt = Annotated[Path | None, typer.Option(help="the run folder [runs/DATA-PROGRAM-LM]")]
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


def _option(default: Any, help: str, env: str | None = None) -> Any:
    return field(default=default, metadata={"help": help, "env": env})


@dataclass
class LMOptions:
    """The options that every command which calls an LM shares; the door makes flags of the fields."""

    lm: list[str] | None = _option(
        None, "gemini/MODEL, openai/MODEL, gguf:PATH, replay:FILE, knn, …; STAGE=NAME for one stage [$ARCHEHR_LM]"
    )
    api_base: str | None = _option(None, "address of an OpenAI-compatible server")
    reasoning: str | None = _option(None, "thinking effort: none, minimal, low, medium, high, xhigh, max")
    seed: int | None = _option(None, "sampling seed")
    max_tokens: int | None = _option(None, "most tokens of one reply, thinking included")
    timeout: float = _option(120.0, "seconds for one attempt")
    retries: int = _option(3, "attempts after a transient error")
    max_calls: int | None = _option(None, "stop before more calls than this")
    max_tokens_total: int | None = _option(None, "stop before more tokens than this")
    max_cost: float | None = _option(None, "stop before a higher cost in US dollars")
    price_in: float | None = _option(None, "dollars per million input tokens, where unknown")
    price_out: float | None = _option(None, "dollars per million output tokens, where unknown")
    local_only: bool = _option(False, "refuse every endpoint that is not this machine", "ARCHEHR_LOCAL_ONLY")
    accept_model_version: bool = _option(False, "accept answers from another model than asked for")
    safety: str = _option("BLOCK_NONE", "Gemini safety threshold")
    context: int | None = _option(None, "gguf: context size in tokens")
    threads: int | None = _option(None, "gguf: CPU threads")
    schema: str = _option("auto", "auto, json (no schema is sent) or none (the prompt alone asks for JSON)")
    record: Path | None = _option(None, "append every request and reply to this file, for replay:FILE")

    def names(self) -> dict[str, str]:
        """The LMs asked for by stage; "" is that of the stages not named. Raises DataError for two for one stage."""
        return by_stage(self.lm or [], os.environ.get("ARCHEHR_LM"))

    def title(self) -> str | None:
        """The LMs in a word, for the name of a folder."""
        return "-".join(f"{stage}-{name}" if stage else name for stage, name in self.names().items()) or None

    def budget(self) -> Any:
        """The limits asked for, as a Budget that one or more LMs may share."""
        from archehr.program.lm import Budget

        return Budget(
            max_calls=self.max_calls,
            max_tokens_total=self.max_tokens_total,
            max_cost=self.max_cost,
            price_in=self.price_in,
            price_out=self.price_out,
        )

    def make(self, name: str, beside: Any = None, budget: Any = None) -> Any:
        """The dspy.LM called `name` with these options; `beside` is an LM whose ledger and budget it shares, `budget`
        one that it shares with others. Raises DataError."""
        from archehr.program.lm import LMSettings, make_lm

        known = {field.alias or key for key, field in LMSettings.model_fields.items()}
        settings = {f.name: getattr(self, f.name) for f in fields(self) if f.name in known}
        settings |= {"num_retries": self.retries, "local_only": self.local_only or None}
        budget = budget or (beside.engine.budget if beside is not None else self.budget())
        return make_lm(name, ledger=beside.ledger if beside is not None else None, budget=budget, **settings)


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
        return "-".join(f"{name.replace('_', '-')}-{value}" for name, value in self._given().items()) or None

    def _given(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


def with_lm_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command a flag for every field of LMOptions; it receives them as the keyword `lm_options`."""
    return _with_options(command, LMOptions, "lm_options")


def with_data_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command a flag for every field of DataOptions; it receives them as the keyword `data_options`."""
    return _with_options(command, DataOptions, "data_options")


def with_settings_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command a flag for every field of SettingsOptions; it receives them as the keyword `settings`."""
    return _with_options(command, SettingsOptions, "settings")


def _with_options(command: Callable[..., Any], record: type[Any], keyword: str) -> Callable[..., Any]:
    """A command with a flag for every field of a dataclass of options, which it receives as `keyword`.

    A field that the command has as a parameter of its own (`lm`, where it takes several) stays the command's.
    """
    hints, kinds = get_type_hints(command, include_extras=True), get_type_hints(record)
    own = [p.replace(annotation=hints[n]) for n, p in inspect.signature(command).parameters.items() if n != keyword]
    shared = []
    taken = [f for f in fields(record) if f.name not in hints]
    for f in taken:
        option = typer.Option(help=f.metadata["help"], envvar=f.metadata["env"])
        flag: Any = Annotated[kinds[f.name], option]
        shared.append(inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=flag))

    @functools.wraps(command)
    def wrapper(**given: Any) -> Any:
        options = record(**{f.name: given.pop(f.name) for f in taken})
        return command(**given, **{keyword: options})

    wrapper.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
    wrapper.__annotations__ = {p.name: p.annotation for p in (*own, *shared)}
    return wrapper


def by_stage(given: Sequence[str], default: str | None) -> dict[str, str]:
    """["A", "score=B"] -> {"": "A", "score": "B"}; `default` stands in for the one without a stage."""
    names: dict[str, str] = {}
    for text in given:
        stage, equals, name = text.partition("=")
        if not equals or not stage.replace("_", "").isalnum():  # a path may hold an =
            stage, name = "", text
        if stage in names:
            which = f"stage {stage}" if stage else "all stages"
            raise DataError(
                f"--lm: {names[stage]} and {name} are both for {which}; name one, or give STAGE=NAME; for both to "
                "vote on the evidence: --views score,score_b --lm score_b=NAME"
            )
        names[stage] = name
    if default and "" not in names:
        names[""] = default
    return names


def make(lm_options: LMOptions) -> Any:
    """The LM asked for, or the LMs by stage that share one ledger and budget, or None; what the user should know of
    them goes to stderr."""
    made: dict[str, Any] = {}
    for stage, name in lm_options.names().items():
        made[stage] = make_one(lm_options, name, beside=next(iter(made.values()), None))
    return made[""] if made.keys() == {""} else made or None


def make_one(lm_options: LMOptions, name: str, beside: Any = None) -> Any:
    """The LM called `name`; what the user should know of it goes to stderr."""
    lm = lm_options.make(name, beside)
    for note in lm.notes:
        say(note)
    return lm


def keep_offline(local_only: bool) -> None:
    """With --local-only, the models of the scores come from disk or not at all. Before transformers is imported."""
    if local_only:
        os.environ["HF_HUB_OFFLINE"] = "1"


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
