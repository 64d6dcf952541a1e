"""What clinical abbreviations stand for: only those with one reading, so that an expansion is never a guess."""

from __future__ import annotations

import re

# Lower-case keys also match with a capital first letter ("W/", "Pt"); all others match exactly as written, because
# PT, MS or RA mean several things and "pt" only one.
ABBREVIATIONS = {
    # how notes join words
    "w/": "with", "w/o": "without", "h/o": "history of", "s/p": "after", "c/w": "consistent with",
    "p/w": "presenting with", "d/t": "due to", "2/2": "due to", "c/b": "complicated by", "r/o": "rule out",
    "f/u": "follow-up", "b/l": "bilateral", "i/s/o": "in the setting of",
    "w/u": "workup", "n/v": "nausea and vomiting", "a/w": "associated with", "e/o": "evidence of",
    "y/o": "year old", "yo": "year old", "pt": "patient", "pts": "patients", "hx": "history", "dx": "diagnosis",
    "dx'd": "diagnosed", "ddx": "differential diagnosis",
    "sx": "symptoms", "fx": "fracture", "bx": "biopsy", "cx": "culture", "abx": "antibiotics", "ppx": "prophylaxis",
    "d/c'd": "discontinued", "dc'd": "discontinued", "s/s": "signs and symptoms",
    "outpt": "outpatient", "inpt": "inpatient", "approx": "approximately", "incl.": "including", "i.e.": "that is",
    "e.g.": "for example", "wk": "week", "wks": "weeks", "mo": "months", "hrs": "hours", "hr": "hour",
    "mos": "months", "yrs": "years", "pre-op": "preoperative", "post-op": "postoperative",
    "intra-op": "intraoperative", "resp": "respiratory", "neg": "negative", "pos": "positive", "lac": "laceration",
    "PTA": "prior to admission", "POD": "postoperative day",
    # how drugs are given
    "PO": "by mouth", "BID": "twice daily", "TID": "three times daily", "QID": "four times daily",
    "qHS": "nightly", "QHS": "nightly", "qhs": "nightly", "qd": "daily", "qAM": "every morning", "PRN": "as needed",
    "prn": "as needed", "SC": "subcutaneous", "IVF": "intravenous fluids", "gtt": "infusion", "gtts": "infusions",
    "nebs": "nebulizers", "Abx": "antibiotics", "PICC": "PICC line",
    # people and places
    "PCP": "primary care doctor", "ED": "emergency department", "OSH": "outside hospital",
    "the OR": "the operating room", "to OR": "to the operating room",
    "EP": "electrophysiology", "ID": "infectious disease",
    "IR": "interventional radiology", "heme": "hematology",
    "Heme": "hematology", "onc": "oncology", "Onc": "oncology", "Cards": "cardiology", "Neuro": "neurology",

    # findings
    "BP": "blood pressure", "HR": "heart rate", "RR": "respiratory rate",
    "SOB": "shortness of breath", "DOE": "dyspnea on exertion", "LOC": "loss of consciousness",
    "AMS": "altered mental status", "UOP": "urine output", "BM": "bowel movement", "Cr": "creatinine",
    "BUN": "urea nitrogen", "Hgb": "hemoglobin", "Hct": "hematocrit", "WBC": "white blood cells",
    "Plt": "platelets", "plt": "platelets", "plts": "platelets", "Tbili": "total bilirubin", "trop": "troponin",
    "Trop": "troponin", "LFTs": "liver tests", "lytes": "electrolytes", "BCx": "blood cultures",
    "UCx": "urine culture", "UA": "urinalysis", "EKG": "electrocardiogram", "ECG": "electrocardiogram",
    "TTE": "echocardiogram", "TEE": "transesophageal echocardiogram", "EF": "ejection fraction",
    "LVEF": "ejection fraction", "CXR": "chest x-ray", "US": "ultrasound", "NCHCT": "head CT", "CTH": "head CT",
    "EGD": "upper endoscopy", "LP": "lumbar puncture", "EEG": "brain wave test", "PFTs": "lung function tests",
    "tele": "heart monitoring", "bronch": "bronchoscopy", "Bronch": "bronchoscopy",
    # conditions
    "HTN": "hypertension", "HLD": "high cholesterol", "DM2": "type 2 diabetes", "T2DM": "type 2 diabetes",
    "DM": "diabetes", "CAD": "coronary artery disease", "CHF": "heart failure", "HFpEF": "heart failure",
    "HFrEF": "heart failure", "AF": "atrial fibrillation", "Afib": "atrial fibrillation",
    "afib": "atrial fibrillation", "RVR": "rapid ventricular response", "NSTEMI": "heart attack",
    "STEMI": "heart attack", "CVA": "stroke", "TIA": "transient ischemic attack", "SAH": "subarachnoid hemorrhage",
    "ICH": "intracranial hemorrhage", "SDH": "subdural hematoma", "DVT": "deep vein thrombosis",
    "VTE": "venous thromboembolism", "PNA": "pneumonia", "CAP": "community acquired pneumonia",
    "HAP": "hospital acquired pneumonia", "COPD": "chronic obstructive pulmonary disease",
    "ILD": "interstitial lung disease", "OSA": "sleep apnea", "ARDS": "acute respiratory distress syndrome",
    "AKI": "acute kidney injury", "ARF": "acute renal failure", "CKD": "chronic kidney disease",
    "ESRD": "end stage kidney disease", "ATN": "acute tubular necrosis", "UTI": "urinary tract infection",
    "GIB": "gastrointestinal bleeding", "UGIB": "upper gastrointestinal bleeding",
    "LGIB": "lower gastrointestinal bleeding", "GERD": "acid reflux", "PUD": "peptic ulcer disease",
    "SBO": "small bowel obstruction", "IBD": "inflammatory bowel disease", "HE": "hepatic encephalopathy",
    "DKA": "diabetic ketoacidosis",
    "HIT": "heparin induced thrombocytopenia", "DIC": "clotting failure", "HCC": "liver cancer",
    "RCC": "kidney cancer", "PJP": "pneumocystis pneumonia", "BPH": "enlarged prostate", "ETOH": "alcohol",
    "EtOH": "alcohol", "NSAIDs": "anti-inflammatory drugs", "NSAID": "anti-inflammatory drug", "APAP": "acetaminophen",
    "ASA": "aspirin", "PPI": "acid blocker", "SSRI": "antidepressant", "PRBC": "red cells", "PRBCs": "red cells",
    "pRBC": "red cells", "pRBCs": "red cells", "FFP": "plasma", "TPN": "intravenous nutrition",
    "NPO": "nothing by mouth",
    "DNR": "do not resuscitate", "HCP": "health care proxy", "PEG": "feeding tube", "NGT": "nasogastric tube",
    "NG": "nasogastric", "CPR": "resuscitation", "ROSC": "return of circulation", "PPM": "pacemaker",
    "BKA": "below knee amputation", "CABG": "bypass surgery", "PCI": "stenting",
    "CRRT": "continuous dialysis", "CVVH": "continuous dialysis", "BiPAP": "breathing mask",
}  # fmt: skip

# Letters that are chemistry only in front of a value.
BEFORE_A_NUMBER = {
    "K": "potassium", "Na": "sodium", "Mg": "magnesium", "Ca": "calcium", "T": "temperature", "HCO3": "bicarbonate",
    "O2": "oxygen", "SBP": "systolic blood pressure",
}  # fmt: skip

_FORMS = dict(ABBREVIATIONS)
for _short, _long in ABBREVIATIONS.items():
    if _short.islower() or not any(c.isupper() for c in _short):
        _FORMS.setdefault(_short[0].upper() + _short[1:], _long[0].upper() + _long[1:])
_ANY = "|".join(re.escape(k) for k in sorted(_FORMS, key=len, reverse=True))
_PATTERN = re.compile(rf"(?<![\w/.-])(?:({_ANY})(?![\w/'])|({'|'.join(BEFORE_A_NUMBER)})(?= (?:of |to )?\d))")


def expand(text: str) -> str:
    """`text` with its unambiguous clinical abbreviations written out: "s/p TIPS c/b HE" -> "after TIPS complicated
    by hepatic encephalopathy"."""
    return _PATTERN.sub(lambda m: _FORMS[m[1]] if m[1] else BEFORE_A_NUMBER[m[2]], text)
