"""Words by which a message names a disease or a complaint, and the everyday words that are no part of a name."""

from __future__ import annotations

# Head nouns of diseases, and the endings that make one.
DISEASE = (
    r"(?:disease|desease|dise[as]e|syndrome|sydrome|disorder|cancer|tumou?rs?|carcinoma|leuka?emia|dystrophy"
    r"|deficiency|infection|diabetes|stroke|palsy"
    r"|hypertension|hernia|ulcers?|prolapse|seizures?|abscess|cysts?|nodules?|fibroids?|failure|attack|embolism"
    r"|thrombosis|aneurysm|shingles"
    r"|lupus|asthma|gout|autism|adhd|copd|hiv|(?-i:AIDS)|hpv|std|cataracts?|glaucoma|measles|scabies|warts?|herpes"
    r"|anthrax|malaria|tuberculosis"
    r"|ataxia|narcolepsy|vertigo|migraines?|concussion|fistula|tetanus|polio|psoriasis|eczema|rosacea|vitiligo"
    r"|scoliosis|sciatica|tinnitus"
    r"|celiac|ibs|gerd|als|pcos|afib|fibrillation|obesity|insomnia|depression|anxiety|dementia|alzheimer'?s"
    r"|parkinson'?s|crohn'?s"
    r"|[a-z]{3,}(?:itis|itus|oma|osis|emia|aemia|pathy|plasia|trophy|algia|uria|penia|philia|lepsy|plegia"
    r"|sclerosis|phobia|megaly|ectasis|edema"
    r"|cephaly|pnea|rrhea|rrhoea|rrhage|stenosis|malacia))"
)  # fmt: skip
COMPLAINT = (
    r"(?:pains?|aches?|headaches?|fevers?|cough|rash|bleeding|swelling|nausea|vomiting|diarrhea|diarrhoea"
    r"|constipation|dizziness|fatigue|weakness"
    r"|numbness|tingling|itching|cramps?|spasms?|tremors?|burning|discharge|lumps?|bruis(?:es?|ing)|blisters?"
    r"|palpitations?|shortness of breath|hearing loss"
    r"|hair loss|weight (?:loss|gain)|memory loss|vision loss|sweating|snoring|fainting|confusion|blood clots?"
    r"|fractures?|stones?|burns?|allergy|allergies"
    r"|[a-z]+ problems?|wound|discomfort|stiffness|jaundice|hives|acne)"
)
ONE_WORD = (
    r"[^ ]+|(?!(?:the|my|this|his|her|a|any|some|have|facing|main|that|same|these|no|or|and|but|big|health|medical"
    r"|following|other) )\w+ .*"
)
NO_DISEASE = frozenset(
    """
    diagnosis prognosis diagnoses basis hypnosis aroma diploma oklahoma osmosis emphasis symptomatology sympathy
    empathy homeopathy naturopathy osteopathy allopathy hemodialysis analysis synthesis genesis mitosis apoptosis
    """.split()
)
# Words that do not belong to a disease's name though they stand before it.
EVERYDAY = frozenset(
    """
    a an the of to for with and or but in on at by from if when as is was are were be been being that which who this
    these those his same similar above following her my our their its your any some no not without never i he she we
    you they it has have had having got get getting do does did can could will would should may might such what why
    how called about suffering suffer suffers suffered diagnosed diagnose severe very bad also possible suspected
    other another patient patients treat treating treatment cure curing cause causes caused causing prevent develop
    developed developing because due since after before during know knowing find help helping information info
    regarding concerning more most one two three like than then so just only into over under between through every
    each all both either named known take taking need want am told said new old current currently recently possibly
    mild active confirmed classic typical early late first second stage type grade recurrent person people someone
    anyone child children year years month months day days history risk symptoms symptom sign signs form case cases
    kind question medicine medication medications drug drugs doctor doctors battling fighting beat beating reverse
    reversing research study studies testing test tests tested gave gives give giving believe think thinking related
    genetic hereditary living live lives worsening mean means out off up rid against include including especially
    usually sometimes often still already dr clinical surgery operation hers extreme extremely terrible many several
    few much experience experiencing counter facing face fix solve health healthe main big positive rare list now
    assist gradual constant using
    """.split()
) - frozenset("type genetic hereditary early mild severe recurrent".split())
ADJECTIVES = frozenset(
    "enlarged advanced generalized generalised mixed inherited acquired localized untreated red".split()
)
