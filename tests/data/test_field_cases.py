"""Notes met in the field that were once split wrongly, with the sentences that they hold."""

from __future__ import annotations

import pytest

from archehr.data.splitter import split_note

CASES = {
    "a list in lower case without bullets": (
        """\
Brief Hospital Course:
Mr. ___ was admitted with atrial fibrillation and started on a blood thinner. Metoprolol was increased.

Discharge Medications:
metoprolol 50 mg twice a day
apixaban 5 mg twice a day
furosemide 20 mg every other day
insulin glargine 12 units at bedtime

Allergies:
penicillin
sulfa
""",
        [
            "Brief Hospital Course:",
            "Mr. ___ was admitted with atrial fibrillation and started on a blood thinner.",
            "Metoprolol was increased.",
            "Discharge Medications:",
            "metoprolol 50 mg twice a day",
            "apixaban 5 mg twice a day",
            "furosemide 20 mg every other day",
            "insulin glargine 12 units at bedtime",
            "Allergies:",
            "penicillin",
            "sulfa",
        ],
    ),
    "wrapped lines that begin with a digit": (
        """\
History of Present Illness:
For about three months Mrs. ___ has had headaches which she rates at 4 over
10 on most days. Last week she had one that she rated 9 over
10 and it made her vomit and stay home from work. They used to come every
2 or 3 months but now come every week.

Laboratory:
Creatinine on arrival was 2.4 and before discharge it had come down to
1.1 with fluids. Troponin was less than
0.01 on two draws.
""",
        [
            "History of Present Illness:",
            "For about three months Mrs. ___ has had headaches which she rates at 4 over 10 on most days.",
            "Last week she had one that she rated 9 over 10 and it made her vomit and stay home from work.",
            "They used to come every 2 or 3 months but now come every week.",
            "Laboratory:",
            "Creatinine on arrival was 2.4 and before discharge it had come down to 1.1 with fluids.",
            "Troponin was less than 0.01 on two draws.",
        ],
    ),
    "masked ranges": (
        """\
Brief Hospital Course:
She had it pinned on [**8-12**]. Her pain was [**7-10**] on arrival and [**2-3**] after surgery.

Discharge Medications:
1. Oxycodone 5 mg Tablet Sig: [**1-2**] Tablets PO Q4H as needed for pain.
2. Senna 8.6 mg Tablet Sig: One (1) Tablet PO BID (2 times a day) as needed.

Followup Instructions:
See the surgeon in [**1-16**] weeks.
""",
        [
            "Brief Hospital Course:",
            "She had it pinned on [**8-12**].",
            "Her pain was [**7-10**] on arrival and [**2-3**] after surgery.",
            "Discharge Medications:",
            "1. Oxycodone 5 mg Tablet Sig: [**1-2**] Tablets PO Q4H as needed for pain.",
            "2. Senna 8.6 mg Tablet Sig: One (1) Tablet PO BID (2 times a day) as needed.",
            "Followup Instructions:",
            "See the surgeon in [**1-16**] weeks.",
        ],
    ),
    "an inline list whose numbers stick to the item before": (
        """\
Brief Hospital Course: He was admitted with confusion from liver disease. Lactulose was started and it cleared.

Discharge Medications: 1. Lactulose 30 mL PO QID 2. Rifaximin 550 mg PO BID 3. Spironolactone 50 mg PO daily 4. \
Furosemide 20 mg PO daily 5. Insulin glargine 14 units SC qHS
""",
        [
            "Brief Hospital Course:",
            "He was admitted with confusion from liver disease.",
            "Lactulose was started and it cleared.",
            "Discharge Medications:",
            "1. Lactulose 30 mL PO QID",
            "2. Rifaximin 550 mg PO BID",
            "3. Spironolactone 50 mg PO daily",
            "4. Furosemide 20 mg PO daily",
            "5. Insulin glargine 14 units SC qHS",
        ],
    ),
    "an export with commas for line ends": (
        "SUBJECTIVE:,  The patient is a woman in her twenties with a runny nose every spring.  She has tried two "
        "tablets from the pharmacy and both stopped working.  She has asthma but needs no daily "
        "inhaler.,MEDICATIONS: , Birth control pill and loratadine.,ALLERGIES: , Sulfa drugs.,OBJECTIVE:,Vitals: "
        " Weight was 60 kg and blood pressure 118/70.,HEENT:  Nose lining red and swollen.  Throat "
        "clear.,ASSESSMENT:,  Seasonal allergic rhinitis.,PLAN:,1.  Stop loratadine.,2.  Start a steroid nose "
        "spray, two puffs each side once a day for three weeks.,3.  Come back if no better.",
        [
            "SUBJECTIVE:",
            "The patient is a woman in her twenties with a runny nose every spring.",
            "She has tried two tablets from the pharmacy and both stopped working.",
            "She has asthma but needs no daily inhaler.",
            "MEDICATIONS:",
            "Birth control pill and loratadine.",
            "ALLERGIES:",
            "Sulfa drugs.",
            "OBJECTIVE:",
            "Vitals:",
            "Weight was 60 kg and blood pressure 118/70.",
            "HEENT:",
            "Nose lining red and swollen.",
            "Throat clear.",
            "ASSESSMENT:",
            "Seasonal allergic rhinitis.",
            "PLAN:",
            "1. Stop loratadine.",
            "2. Start a steroid nose spray, two puffs each side once a day for three weeks.",
            "3. Come back if no better.",
        ],
    ),
    "blanks": (
        """\
Brief Hospital Course:
Ms. ___ was admitted with a leg clot and was started on warfarin ___ mg daily with an INR goal of ___. Her echo \
showed mild ___ and an ejection fraction of ___. She had a reaction to ___, which was added to her allergies.
""",
        [
            "Brief Hospital Course:",
            "Ms. ___ was admitted with a leg clot and was started on warfarin ___ mg daily with an INR goal of ___.",
            "Her echo showed mild ___ and an ejection fraction of ___.",
            "She had a reaction to ___, which was added to her allergies.",
        ],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_note_met_in_the_field(case: str) -> None:
    note, sentences = CASES[case]
    found = split_note(note)
    assert [s.text for s in found] == sentences
    assert all(note[s.start : s.end].split() == s.text.split() for s in found)
