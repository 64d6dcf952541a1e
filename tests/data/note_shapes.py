"""Synthetic notes of the shapes that hospitals and tools write, each as the list of its sentences in order.

Items of `SHAPES` are (text, sentences): the text as it is before any hard wrapping, one sentence per element.
"""

from __future__ import annotations

# A discharge summary of the MIMIC-III kind: masks in brackets, numbered drugs, headers on lines of their own.
MIMIC_III = """\
Admission Date:  [**2118-6-2**]              Discharge Date:  [**2118-6-14**]

Service: MEDICINE

Allergies:
Penicillins / Sulfa (Sulfonamide Antibiotics)

History of Present Illness:
Mr. [**Known lastname 1234**] is a 67 year old man with COPD (on 2L home O2), CAD s/p CABG in [**2109**] and atrial \
fibrillation on warfarin who was brought in by EMS on [**6-2**] with three days of worsening dyspnea. He rates his \
usual dyspnea at 3 out of 10 and rated it 9 out of 10 on arrival. In the ED he was given 125 mg of methylprednisolone \
and 2 g of magnesium (with little effect). BiPAP was started at 12/5 with an FiO2 of 40 %.

Discharge Medications:
1. Warfarin 2 mg Tablet Sig: One (1) Tablet PO HS (at bedtime).
2. Metoprolol Succinate 50 mg Tablet Sustained Release 24 hr Sig: One (1) Tablet Sustained Release 24 hr PO DAILY \
(Daily).
3. Oxycodone 5 mg Tablet Sig: 1-2 Tablets PO Q4-6H (every 4 to 6 hours) as needed for pain.
4. Albuterol Sulfate 90 mcg/Actuation HFA Aerosol Inhaler Sig: Two (2) puffs Inhalation every four (4) hours as \
needed for shortness of breath or wheezing.

Followup Instructions:
See Dr. [**Last Name (STitle) 77**] in [**2-3**] weeks.
"""
MIMIC_III_SENTENCES = [
    "Admission Date: [**2118-6-2**] Discharge Date: [**2118-6-14**]",
    "Service: MEDICINE",
    "Allergies:",
    "Penicillins / Sulfa (Sulfonamide Antibiotics)",
    "History of Present Illness:",
    "Mr. [**Known lastname 1234**] is a 67 year old man with COPD (on 2L home O2), CAD s/p CABG in [**2109**] and "
    "atrial fibrillation on warfarin who was brought in by EMS on [**6-2**] with three days of worsening dyspnea.",
    "He rates his usual dyspnea at 3 out of 10 and rated it 9 out of 10 on arrival.",
    "In the ED he was given 125 mg of methylprednisolone and 2 g of magnesium (with little effect).",
    "BiPAP was started at 12/5 with an FiO2 of 40 %.",
    "Discharge Medications:",
    "1. Warfarin 2 mg Tablet Sig: One (1) Tablet PO HS (at bedtime).",
    "2. Metoprolol Succinate 50 mg Tablet Sustained Release 24 hr Sig: One (1) Tablet Sustained Release 24 hr PO "
    "DAILY (Daily).",
    "3. Oxycodone 5 mg Tablet Sig: 1-2 Tablets PO Q4-6H (every 4 to 6 hours) as needed for pain.",
    "4. Albuterol Sulfate 90 mcg/Actuation HFA Aerosol Inhaler Sig: Two (2) puffs Inhalation every four (4) hours as "
    "needed for shortness of breath or wheezing.",
    "Followup Instructions:",
    "See Dr. [**Last Name (STitle) 77**] in [**2-3**] weeks.",
]

# The MIMIC-IV kind: blanks for names and dates, rows of results that begin with their (blank) date and time.
MIMIC_IV = """\
Name:  ___                     Unit No:   ___

Pertinent Results:
___ 05:30AM BLOOD WBC-9.8 RBC-3.40* Hgb-10.1* Hct-31.2* MCV-92 MCH-29.7 MCHC-32.4 RDW-13.5 Plt ___
___ 05:30AM BLOOD Glucose-112* UreaN-19 Creat-1.7* Na-138 K-3.9 Cl-106 HCO3-25 AnGap-11
___ 01:11PM BLOOD Lactate-2.1*

Brief Hospital Course:
Ms. ___ was admitted to ___ with a leg clot and started on warfarin ___ mg daily with an INR goal of ___. She was \
seen by Dr. ___ on ___ and by the vascular team. Her echo showed mild ___ and an ejection fraction of ___.

# Acute kidney injury: Creatinine peaked at 2.4 on day 3 and came down to 1.1 with fluids.
# Hypertension: Home lisinopril was held.

Transitional Issues:
[ ] Repeat creatinine in 1 week
[ ] Stop warfarin after 3 months unless hematology advises otherwise at the visit on ___

Discharge Condition:
Mental Status: Clear and coherent.
Level of Consciousness: Alert and interactive.
Activity Status: Ambulatory - requires assistance or aid (walker or cane).
"""
MIMIC_IV_SENTENCES = [
    "Name: ___ Unit No: ___",
    "Pertinent Results:",
    "___ 05:30AM BLOOD WBC-9.8 RBC-3.40* Hgb-10.1* Hct-31.2* MCV-92 MCH-29.7 MCHC-32.4 RDW-13.5 Plt ___",
    "___ 05:30AM BLOOD Glucose-112* UreaN-19 Creat-1.7* Na-138 K-3.9 Cl-106 HCO3-25 AnGap-11",
    "___ 01:11PM BLOOD Lactate-2.1*",
    "Brief Hospital Course:",
    "Ms. ___ was admitted to ___ with a leg clot and started on warfarin ___ mg daily with an INR goal of ___.",
    "She was seen by Dr. ___ on ___ and by the vascular team.",
    "Her echo showed mild ___ and an ejection fraction of ___.",
    "# Acute kidney injury:",
    "Creatinine peaked at 2.4 on day 3 and came down to 1.1 with fluids.",
    "# Hypertension:",
    "Home lisinopril was held.",
    "Transitional Issues:",
    "[ ] Repeat creatinine in 1 week",
    "[ ] Stop warfarin after 3 months unless hematology advises otherwise at the visit on ___",
    "Discharge Condition:",
    "Mental Status: Clear and coherent.",
    "Level of Consciousness: Alert and interactive.",
    "Activity Status:",
    "Ambulatory - requires assistance or aid (walker or cane).",
]

# Transcriptions exported to CSV: a comma where a line ended.
EXPORTED = (
    "CHIEF COMPLAINT:,  Heartburn.,HISTORY OF PRESENT ILLNESS: , This is a 51-year-old man with heartburn after meals, "
    "worse at night.  He has tried antacids, which help for an hour.  He denies weight loss, vomiting, or black stools."
    ",PAST MEDICAL HISTORY:,1.  Hypertension.,2.  Gout, last attack in 2019.,MEDICATIONS: , Lisinopril 10 mg daily and "
    "allopurinol 300 mg daily.,ALLERGIES: , None.,OBJECTIVE:,Abdomen:  Soft with mild tenderness in the upper part.,"
    "PLAN:,1.  Start omeprazole 20 mg before breakfast for 8 weeks.,2.  No meals within 3 hours of bedtime.,3.  "
    "Endoscopy if he is no better."
)
EXPORTED_SENTENCES = [
    "CHIEF COMPLAINT:",
    "Heartburn.",
    "HISTORY OF PRESENT ILLNESS:",
    "This is a 51-year-old man with heartburn after meals, worse at night.",
    "He has tried antacids, which help for an hour.",
    "He denies weight loss, vomiting, or black stools.",
    "PAST MEDICAL HISTORY:",
    "1. Hypertension.",
    "2. Gout, last attack in 2019.",
    "MEDICATIONS:",
    "Lisinopril 10 mg daily and allopurinol 300 mg daily.",
    "ALLERGIES:",
    "None.",
    "OBJECTIVE:",
    "Abdomen:",
    "Soft with mild tenderness in the upper part.",
    "PLAN:",
    "1. Start omeprazole 20 mg before breakfast for 8 weeks.",
    "2. No meals within 3 hours of bedtime.",
    "3. Endoscopy if he is no better.",
]

# Lists without marks, in lower and upper case, next to running text.
UNMARKED_LISTS = """\
Hospital Course:
She was admitted with heart failure and given furosemide through a vein, with which she lost 6 kg in four days. Her \
breathing got better and she could walk 100 m without a rest. Spironolactone was added on day 3.

Discharge Medications:
furosemide 40 mg twice a day
spironolactone 25 mg once a day
metoprolol succinate 50 mg once a day
potassium chloride 20 mEq every morning with food
insulin glargine 12 units at bedtime

Home Medications:
Atorvastatin 40 mg PO QHS
Aspirin 81 mg PO daily
Levothyroxine 75 mcg PO every morning on an empty stomach
Acetaminophen 500 mg PO every 6 hours as needed for pain

Allergies:
penicillin (rash)
sulfa
Shellfish
iodinated contrast - hives

Follow up:
Cardiology clinic in 2 weeks
Weight every morning, call if it goes up by more than 2 kg
"""
UNMARKED_LISTS_SENTENCES = [
    "Hospital Course:",
    "She was admitted with heart failure and given furosemide through a vein, with which she lost 6 kg in four days.",
    "Her breathing got better and she could walk 100 m without a rest.",
    "Spironolactone was added on day 3.",
    "Discharge Medications:",
    "furosemide 40 mg twice a day",
    "spironolactone 25 mg once a day",
    "metoprolol succinate 50 mg once a day",
    "potassium chloride 20 mEq every morning with food",
    "insulin glargine 12 units at bedtime",
    "Home Medications:",
    "Atorvastatin 40 mg PO QHS",
    "Aspirin 81 mg PO daily",
    "Levothyroxine 75 mcg PO every morning on an empty stomach",
    "Acetaminophen 500 mg PO every 6 hours as needed for pain",
    "Allergies:",
    "penicillin (rash)",
    "sulfa",
    "Shellfish",
    "iodinated contrast - hives",
    "Follow up:",
    "Cardiology clinic in 2 weeks",
    "Weight every morning, call if it goes up by more than 2 kg",
]

# Marked lists of every kind, some items longer than a line.
MARKED_LISTS = """\
PROBLEM LIST
#1 Chest pain, now resolved
#2 Type 2 diabetes with neuropathy of both feet, on gabapentin 300 mg three times a day and duloxetine 30 mg daily
#3 Gout

MEDICATIONS
1) aspirin 81 mg daily
2) metformin 1000 mg twice a day with breakfast and with dinner, to be held for 48 hours after any iodinated contrast
3) lisinopril 10 mg daily (hold if systolic pressure is below 100)

PLAN
- stress test within 72 hours
- nitroglycerin 0.4 mg under the tongue every 5 minutes up to 3 doses as needed for chest pain, then call for help
- return if the pain comes back

* walk 20 minutes a day
* salt below 2 g a day, and no more than 2 liters of fluid a day until the next visit at the heart failure clinic

• weigh yourself daily
• keep a log of your blood sugar before breakfast and 2 hours after dinner and bring the log to your next visit
"""
MARKED_LISTS_SENTENCES = [
    "PROBLEM LIST",
    "#1 Chest pain, now resolved",
    "#2 Type 2 diabetes with neuropathy of both feet, on gabapentin 300 mg three times a day and duloxetine 30 mg "
    "daily",
    "#3 Gout",
    "MEDICATIONS",
    "1) aspirin 81 mg daily",
    "2) metformin 1000 mg twice a day with breakfast and with dinner, to be held for 48 hours after any iodinated "
    "contrast",
    "3) lisinopril 10 mg daily (hold if systolic pressure is below 100)",
    "PLAN",
    "- stress test within 72 hours",
    "- nitroglycerin 0.4 mg under the tongue every 5 minutes up to 3 doses as needed for chest pain, then call for "
    "help",
    "- return if the pain comes back",
    "* walk 20 minutes a day",
    "* salt below 2 g a day, and no more than 2 liters of fluid a day until the next visit at the heart failure clinic",
    "• weigh yourself daily",
    "• keep a log of your blood sugar before breakfast and 2 hours after dinner and bring the log to your next visit",
]

# Lists within a line.
INLINE_LISTS = """\
Brief Hospital Course: He was admitted with confusion from liver disease and given lactulose, and cleared in 2 days.

Past Medical History: 1. Cirrhosis from alcohol, last drink in [**2160**] 2. Grade 2 varices 3. Type 2 diabetes

Discharge Medications: 1. Lactulose 30 mL PO QID 2. Rifaximin 550 mg PO BID 3. Spironolactone 50 mg PO daily 4. \
Furosemide 20 mg PO daily 5. Insulin glargine 14 units SC qHS

Home Medications: 1) omeprazole 20 mg daily 2) thiamine 100 mg daily 3) folic acid 1 mg daily

Transitional Issues: - ultrasound in 6 months - taper prednisone by 10 mg every 2 weeks - liver clinic in 3 weeks
"""
INLINE_LISTS_SENTENCES = [
    "Brief Hospital Course:",
    "He was admitted with confusion from liver disease and given lactulose, and cleared in 2 days.",
    "Past Medical History:",
    "1. Cirrhosis from alcohol, last drink in [**2160**]",
    "2. Grade 2 varices",
    "3. Type 2 diabetes",
    "Discharge Medications:",
    "1. Lactulose 30 mL PO QID",
    "2. Rifaximin 550 mg PO BID",
    "3. Spironolactone 50 mg PO daily",
    "4. Furosemide 20 mg PO daily",
    "5. Insulin glargine 14 units SC qHS",
    "Home Medications:",
    "1) omeprazole 20 mg daily",
    "2) thiamine 100 mg daily",
    "3) folic acid 1 mg daily",
    "Transitional Issues:",
    "- ultrasound in 6 months",
    "- taper prednisone by 10 mg every 2 weeks",
    "- liver clinic in 3 weeks",
]

# Tables of results: columns of blanks, bars, a date before each row.
TABLES = """\
Laboratory Results:
Date         WBC    Hgb    Plt    Creatinine
2024-03-01   12.4   10.1   288    2.4
2024-03-02   10.9   9.8    301    1.9
2024-03-04   8.7    9.9    310    1.1

Chemistry:
03/01/2024 Na 134 K 5.4 Cl 101 HCO3 18 BUN 44
03/02/2024 Na 137 K 4.6 Cl 103 HCO3 21 BUN 38
03/04/2024 Na 139 K 4.1 Cl 104 HCO3 24 BUN 21

| Test | Result | Unit |
| INR | 2.4 | |
| Lactate | 1.1 | mmol/L |

Troponin: 0.01
Lipase: 44
Blood culture: no growth
"""
TABLES_SENTENCES = [line for raw in TABLES.splitlines() if (line := " ".join(raw.split()))]

# Markdown, as language models and scribes write it.
MARKDOWN = """\
# Clinic Note

## Subjective
The patient is a 34-year-old woman with migraine since she was 16, about 4 attacks a month, each of 12 to 24 hours. \
Sumatriptan 50 mg helps within 2 hours if she takes it early. She has no aura.

**Medications:**
- sumatriptan 50 mg as needed
- propranolol 40 mg twice a day

**Plan:** Increase propranolol to 80 mg twice a day and see her again in 8 weeks.

### Return Precautions
- worst headache of her life
- weakness on one side
"""
MARKDOWN_SENTENCES = [
    "# Clinic Note",
    "## Subjective",
    "The patient is a 34-year-old woman with migraine since she was 16, about 4 attacks a month, each of 12 to 24 "
    "hours.",
    "Sumatriptan 50 mg helps within 2 hours if she takes it early.",
    "She has no aura.",
    "**Medications:**",
    "- sumatriptan 50 mg as needed",
    "- propranolol 40 mg twice a day",
    "**Plan:**",
    "Increase propranolol to 80 mg twice a day and see her again in 8 weeks.",
    "### Return Precautions",
    "- worst headache of her life",
    "- weakness on one side",
]

# Capitals throughout.
SHOUTED = """\
HOSPITAL COURSE:
HE WAS BROUGHT TO THE ED AFTER HE HIT HIS HEAD ON THE SINK. CT SHOWED A 4 MM SUBDURAL HEMATOMA ON THE LEFT (NO \
SHIFT). HE WAS WATCHED IN THE ICU FOR 2 DAYS AND THE BLEED DID NOT GROW. WARFARIN WAS STOPPED AND VITAMIN K 10 MG AND \
4-FACTOR PCC WERE GIVEN. INR CAME DOWN FROM 3.4 TO 1.2 IN 6 HOURS.

MEDICATIONS:
LEVETIRACETAM 500 MG TWICE A DAY
ACETAMINOPHEN 500 MG EVERY 6 HOURS AS NEEDED
METOPROLOL 25 MG TWICE A DAY

DISCHARGE PLAN: REPEAT CT IN 2 WEEKS. NO DRIVING UNTIL THEN.
"""
SHOUTED_SENTENCES = [
    "HOSPITAL COURSE:",
    "HE WAS BROUGHT TO THE ED AFTER HE HIT HIS HEAD ON THE SINK.",
    "CT SHOWED A 4 MM SUBDURAL HEMATOMA ON THE LEFT (NO SHIFT).",
    "HE WAS WATCHED IN THE ICU FOR 2 DAYS AND THE BLEED DID NOT GROW.",
    "WARFARIN WAS STOPPED AND VITAMIN K 10 MG AND 4-FACTOR PCC WERE GIVEN.",
    "INR CAME DOWN FROM 3.4 TO 1.2 IN 6 HOURS.",
    "MEDICATIONS:",
    "LEVETIRACETAM 500 MG TWICE A DAY",
    "ACETAMINOPHEN 500 MG EVERY 6 HOURS AS NEEDED",
    "METOPROLOL 25 MG TWICE A DAY",
    "DISCHARGE PLAN:",
    "REPEAT CT IN 2 WEEKS.",
    "NO DRIVING UNTIL THEN.",
]

# A telegraphic note with one thought a line, and German and Spanish abbreviations.
LINES = """\
S: pt seen at bedside, slept ok
pain 4/10, was 8/10 yesterday
tolerating clears
O: T 37.2 HR 88 BP 118/70 RR 16 SpO2 97% RA
abd soft, incision clean
A/P: POD2 s/p lap chole
advance diet
stop IV fluids
dc tomorrow if ok
"""
LINES_SENTENCES = LINES.replace("S: ", "S:\n").replace("O: ", "O:\n").splitlines()

ABBREVIATED = """\
Der Patient klagt seit ca. 3 Wochen über Husten, u.a. nachts, z.B. im Liegen. Er nahm d.h. keine Tabletten ein.

La Dra. Ruiz vio al paciente. Toma varios medicamentos, p.ej. Enalapril 10 mg al día.
"""
ABBREVIATED_SENTENCES = [
    "Der Patient klagt seit ca. 3 Wochen über Husten, u.a. nachts, z.B. im Liegen.",
    "Er nahm d.h. keine Tabletten ein.",
    "La Dra. Ruiz vio al paciente.",
    "Toma varios medicamentos, p.ej. Enalapril 10 mg al día.",
]

SHAPES: dict[str, tuple[str, list[str]]] = {
    "mimic-iii": (MIMIC_III, MIMIC_III_SENTENCES),
    "mimic-iv": (MIMIC_IV, MIMIC_IV_SENTENCES),
    "exported": (EXPORTED, EXPORTED_SENTENCES),
    "unmarked lists": (UNMARKED_LISTS, UNMARKED_LISTS_SENTENCES),
    "marked lists": (MARKED_LISTS, MARKED_LISTS_SENTENCES),
    "inline lists": (INLINE_LISTS, INLINE_LISTS_SENTENCES),
    "tables": (TABLES, TABLES_SENTENCES),
    "markdown": (MARKDOWN, MARKDOWN_SENTENCES),
    "capitals": (SHOUTED, SHOUTED_SENTENCES),
    "one thought a line": (LINES, LINES_SENTENCES),
    "abbreviations": (ABBREVIATED, ABBREVIATED_SENTENCES),
}
