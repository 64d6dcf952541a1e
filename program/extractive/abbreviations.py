"""What clinical abbreviations stand for: those that an answer may write out, and likely readings for comparisons."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

# Lower-case keys also match with a capital first letter ("W/", "Hx"); all others match exactly as written, because
# PT, MS or RA mean several things and "pt" only one.

# One reading in a clinical note, whatever stands beside it: an answer writes these out, word for word. What is left
# out has a second reading somewhere: PCP a pneumonia, IR a slow tablet, CVA an angle to knock on, 2/2 a date.
ONE_READING = {
    # how notes join words
    "w/": "with", "w/o": "without", "h/o": "history of", "s/p": "after", "d/t": "due to", "f/u": "follow-up",
    "i/s/o": "in the setting of", "w/u": "workup", "y/o": "year old", "hx": "history", "dx'd": "diagnosed",
    "ddx": "differential diagnosis", "bx": "biopsy", "abx": "antibiotics", "ppx": "prophylaxis",
    "outpt": "outpatient", "inpt": "inpatient", "approx": "approximately", "approx.": "approximately",
    "incl.": "including", "i.e.": "that is", "e.g.": "for example", "wks": "weeks", "hrs": "hours", "mos": "months",
    "yrs": "years", "pre-op": "preoperative", "post-op": "postoperative", "intra-op": "intraoperative",
    "nebs": "nebulizers", "lytes": "electrolytes",
    # how drugs are given
    "BID": "twice daily", "TID": "three times daily", "QID": "four times daily", "qd": "daily", "qHS": "at bedtime",
    "QHS": "at bedtime", "qhs": "at bedtime", "qAM": "every morning", "PRN": "as needed", "prn": "as needed",
    "NPO": "nothing by mouth",
    # findings and studies
    "Hgb": "hemoglobin", "Hct": "hematocrit", "BUN": "blood urea nitrogen", "EKG": "electrocardiogram",
    "ECG": "electrocardiogram", "EEG": "electroencephalogram", "CXR": "chest x-ray",
    "LVEF": "left ventricular ejection fraction", "UOP": "urine output", "BCx": "blood cultures",
    "UCx": "urine culture",
    # conditions and treatments
    "HTN": "hypertension", "T2DM": "type 2 diabetes", "DM2": "type 2 diabetes", "CHF": "congestive heart failure",
    "HFpEF": "heart failure with preserved ejection fraction",
    "HFrEF": "heart failure with reduced ejection fraction", "Afib": "atrial fibrillation",
    "afib": "atrial fibrillation", "RVR": "rapid ventricular response",
    "NSTEMI": "non-ST elevation myocardial infarction", "STEMI": "ST elevation myocardial infarction",
    "TIA": "transient ischemic attack", "DVT": "deep vein thrombosis", "VTE": "venous thromboembolism",
    "COPD": "chronic obstructive pulmonary disease", "AKI": "acute kidney injury", "CKD": "chronic kidney disease",
    "ESRD": "end stage renal disease", "UTI": "urinary tract infection", "UGIB": "upper gastrointestinal bleeding",
    "LGIB": "lower gastrointestinal bleeding", "GERD": "gastroesophageal reflux disease",
    "DKA": "diabetic ketoacidosis", "ETOH": "alcohol", "EtOH": "alcohol",
    "NSAIDs": "nonsteroidal anti-inflammatory drugs", "NSAID": "nonsteroidal anti-inflammatory drug",
    "PRBC": "packed red blood cells", "PRBCs": "packed red blood cells", "pRBC": "packed red blood cells",
    "pRBCs": "packed red blood cells", "DNR": "do not resuscitate", "CABG": "coronary artery bypass graft",
    "CRRT": "continuous renal replacement therapy",
}  # fmt: skip

# Likely readings, and plain words for some of the above: good enough to see that two texts speak of one thing, and
# never shown to anybody.
LIKELY = {
    "c/b": "complicated by", "n/v": "nausea and vomiting", "yo": "year old", "POD": "postoperative day",
    "OSH": "outside hospital", "PO": "by mouth", "c/w": "consistent with", "p/w": "presenting with", "2/2": "due to",
    "r/o": "rule out", "b/l": "bilateral", "a/w": "associated with", "e/o": "evidence of", "pt": "patient",
    "pts": "patients", "dx": "diagnosis", "sx": "symptoms", "fx": "fracture", "cx": "culture",
    "d/c'd": "discontinued", "dc'd": "discontinued", "s/s": "signs and symptoms", "wk": "week", "mo": "months",
    "hr": "hour", "resp": "respiratory", "neg": "negative", "pos": "positive", "lac": "laceration",
    "PTA": "prior to admission", "SC": "subcutaneous", "IVF": "intravenous fluids", "gtt": "infusion",
    "gtts": "infusions", "Abx": "antibiotics", "PICC": "PICC line", "qHS": "nightly", "QHS": "nightly",
    "qhs": "nightly",
    # people and places
    "PCP": "primary care doctor", "ED": "emergency department", "the OR": "the operating room",
    "to OR": "to the operating room", "EP": "electrophysiology", "ID": "infectious disease",
    "IR": "interventional radiology", "heme": "hematology", "Heme": "hematology", "onc": "oncology",
    "Onc": "oncology", "Cards": "cardiology", "Neuro": "neurology",
    # findings
    "BP": "blood pressure", "HR": "heart rate", "RR": "respiratory rate", "SOB": "shortness of breath",
    "DOE": "dyspnea on exertion", "LOC": "loss of consciousness", "AMS": "altered mental status",
    "BM": "bowel movement", "Cr": "creatinine", "Creat": "creatinine", "UreaN": "urea nitrogen",
    "AlkPhos": "alkaline phosphatase", "TotBili": "total bilirubin", "BUN": "urea nitrogen", "WBC": "white blood cells",
    "Plt": "platelets", "plt": "platelets", "plts": "platelets", "Tbili": "total bilirubin", "trop": "troponin",
    "Trop": "troponin", "LFTs": "liver tests", "UA": "urinalysis", "TTE": "echocardiogram",
    "TEE": "transesophageal echocardiogram", "EF": "ejection fraction", "LVEF": "ejection fraction",
    "US": "ultrasound", "NCHCT": "head CT", "CTH": "head CT", "EGD": "upper endoscopy", "LP": "lumbar puncture",
    "EEG": "brain wave test", "PFTs": "lung function tests", "tele": "heart monitoring", "bronch": "bronchoscopy",
    "Bronch": "bronchoscopy",
    # conditions
    "HLD": "high cholesterol", "DM": "diabetes", "CAD": "coronary artery disease", "CHF": "heart failure",
    "HFpEF": "heart failure", "HFrEF": "heart failure", "AF": "atrial fibrillation", "PNA": "pneumonia",
    "NSTEMI": "heart attack", "STEMI": "heart attack", "CVA": "stroke", "SAH": "subarachnoid hemorrhage",
    "ICH": "intracranial hemorrhage", "SDH": "subdural hematoma", "CAP": "community acquired pneumonia",
    "HAP": "hospital acquired pneumonia", "ILD": "interstitial lung disease", "OSA": "sleep apnea",
    "ARDS": "acute respiratory distress syndrome", "ARF": "acute renal failure", "ESRD": "end stage kidney disease",
    "ATN": "acute tubular necrosis", "GIB": "gastrointestinal bleeding", "GERD": "acid reflux",
    "PUD": "peptic ulcer disease", "SBO": "small bowel obstruction", "IBD": "inflammatory bowel disease",
    "HE": "hepatic encephalopathy", "HIT": "heparin induced thrombocytopenia", "DIC": "clotting failure",
    "HCC": "liver cancer", "RCC": "kidney cancer", "PJP": "pneumocystis pneumonia", "BPH": "enlarged prostate",
    "NSAIDs": "anti-inflammatory drugs", "NSAID": "anti-inflammatory drug", "APAP": "acetaminophen",
    "ASA": "aspirin", "PPI": "acid blocker", "SSRI": "antidepressant", "PRBC": "red cells", "PRBCs": "red cells",
    "pRBC": "red cells", "pRBCs": "red cells", "FFP": "plasma", "TPN": "intravenous nutrition",
    "HCP": "health care proxy", "PEG": "feeding tube", "NGT": "nasogastric tube", "NG": "nasogastric",
    "CPR": "resuscitation", "ROSC": "return of circulation", "PPM": "pacemaker", "BKA": "below knee amputation",
    "CABG": "bypass surgery", "PCI": "stenting", "CRRT": "continuous dialysis", "CVVH": "continuous dialysis",
    "BiPAP": "breathing mask",
}  # fmt: skip

# Letters that are likely chemistry in front of a value.
_BEFORE_A_NUMBER = {
    "K": "potassium", "Na": "sodium", "Mg": "magnesium", "Ca": "calcium", "T": "temperature", "HCO3": "bicarbonate",
    "O2": "oxygen", "SBP": "systolic blood pressure",
}  # fmt: skip


def _forms(table: Mapping[str, str]) -> dict[str, str]:
    """The table with the capital first letter that a lower-case abbreviation has at the start of a sentence."""
    forms = dict(table)
    for short, long in table.items():
        if not any(c.isupper() for c in short):
            forms.setdefault(short[0].upper() + short[1:], long[0].upper() + long[1:])
    return forms


def _any_of(forms: Mapping[str, str]) -> str:
    return "|".join(re.escape(k) for k in sorted(forms, key=len, reverse=True))


_WRITTEN = _forms(ONE_READING)
_READ = _forms({**ONE_READING, **LIKELY})
# Not within a word, a mask or a chain ("PT/INR", "Na-K"): part of a chain says nothing by itself.
_TO_WRITE = re.compile(rf"(?<![\w/.*-])(?:{_any_of(_WRITTEN)})(?![\w/'*-]|\.\w)")
_TO_READ = re.compile(
    rf"(?<![\w/.-])(?:({_any_of(_READ)})(?![\w/'])|({'|'.join(_BEFORE_A_NUMBER)})(?= (?:of |to )?\d))"
)


@lru_cache(maxsize=20_000)
def expand(text: str) -> str:
    """`text` with its abbreviations replaced by their likeliest readings, for comparing texts and not for showing:
    "s/p TIPS c/b HE" -> "after TIPS complicated by hepatic encephalopathy"."""
    if is_all_capitals(text):
        return text
    return _TO_READ.sub(lambda m: _READ[m[1]] if m[1] else _BEFORE_A_NUMBER[m[2]], text)


def write_out(text: str) -> str:
    """`text` with those abbreviations written out that have one reading, unless it is all capitals: there "HE" is a
    pronoun and "PO" may be anything."""
    return text if is_all_capitals(text) else _TO_WRITE.sub(lambda m: _WRITTEN[m[0]], text)


def is_all_capitals(text: str) -> bool:
    """Whether a sentence of four words or more is written in capitals, units and the like ("5 mg") aside."""
    words = re.findall(r"[^\W\d_]{2,}", text)
    return len(words) >= 4 and sum(w.isupper() for w in words) > 0.8 * len(words)
