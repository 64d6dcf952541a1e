"""Names of an answer that its note does not hold: drugs under any of their names, and words with a capital."""

from __future__ import annotations

import re

from archehr.program.extractive.abbreviations import expand
from archehr.program.extractive.text import stem, words
from archehr.program.stages.verify.quantities import MONTHS

# A word with a capital that does not begin a sentence; in capitals throughout it is an abbreviation.
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]{3,}\b")
# How the names of drug substances end, after the WHO's stems of international nonproprietary names.
_DRUG_ENDINGS = """
olol pril sartan statin mycin micin cillin oxacin azole cycline parin xaban gatran grel dipine azepam azolam barbital
profen proxen triptan setron tidine semide thiazide gliptin gliflozin glutide formin mab tinib vir platin rubicin taxel
sone solone onide afil zosin oxetine triptyline azine apine peridone caine codone morphone fentanil mustine trexate
penem bactam fungin dronate lukast buterol meterol tropium relin lactone amide idone arone nercept bercept tacept
traline pram gabalin limus thyroxine
"""
_DRUGS = "aspirin clopidogrel digoxin gabapentin heparin insulin lithium morphine acetaminophen warfarin"
_DRUG = re.compile(rf"\b(?:\w{{2,}}(?:{'|'.join(_DRUG_ENDINGS.split())})|{'|'.join(_DRUGS.split())})\b", re.IGNORECASE)
# What notes call a drug -> its substances: short forms, and the brands that are said more often than the substance.
_SUBSTANCES = {
    short: substances.split()
    for short, substances in (
        pair.split(": ")
        for pair in (
            "hctz: hydrochlorothiazide|ufh: heparin|lmwh: heparin|asa: aspirin|apap: acetaminophen|ntg: nitroglycerin"
            "|mtx: methotrexate|mmf: mycophenolate|pcn: penicillin|nac: acetylcysteine|vanc: vancomycin"
            "|vanco: vancomycin|ctx: ceftriaxone|inh: isoniazid|tpa: alteplase|ivig: immunoglobulin|levo: levofloxacin"
            "|epi: epinephrine|norepi: norepinephrine|amio: amiodarone|dilt: diltiazem|dex: dexamethasone"
            "|bactrim: trimethoprim sulfamethoxazole|zosyn: piperacillin tazobactam|unasyn: ampicillin sulbactam"
            "|augmentin: amoxicillin clavulanate|flagyl: metronidazole|cipro: ciprofloxacin|levaquin: levofloxacin"
            "|lasix: furosemide|bumex: bumetanide|aldactone: spironolactone|lopressor: metoprolol|toprol: metoprolol"
            "|coreg: carvedilol|norvasc: amlodipine|lipitor: atorvastatin|crestor: rosuvastatin|plavix: clopidogrel"
            "|brilinta: ticagrelor|coumadin: warfarin|eliquis: apixaban|xarelto: rivaroxaban|pradaxa: dabigatran"
            "|lovenox: enoxaparin|tylenol: acetaminophen|motrin: ibuprofen|advil: ibuprofen|aleve: naproxen"
            "|toradol: ketorolac|dilaudid: hydromorphone|percocet: oxycodone acetaminophen|ativan: lorazepam"
            "|valium: diazepam|xanax: alprazolam|haldol: haloperidol|seroquel: quetiapine|zyprexa: olanzapine"
            "|zoloft: sertraline|prozac: fluoxetine|celexa: citalopram|lexapro: escitalopram|keppra: levetiracetam"
            "|dilantin: phenytoin|depakote: valproate|neurontin: gabapentin|lyrica: pregabalin|sinemet: levodopa"
            "|zofran: ondansetron|reglan: metoclopramide|protonix: pantoprazole|prilosec: omeprazole"
            "|pepcid: famotidine|prograf: tacrolimus|cellcept: mycophenolate|synthroid: levothyroxine"
            "|solumedrol: methylprednisolone|decadron: dexamethasone|narcan: naloxone|benadryl: diphenhydramine"
        ).split("|")
    )
}


def missing_names(sentence: str, note: str) -> list[str]:
    """Drugs, and words that a capital inside the sentence makes a name, which the note does not hold under any name of
    theirs."""
    there = {*words(note), *words(expand(note))}
    there |= {substance for word in there for substance in _SUBSTANCES.get(word, ())}
    stems = {stem(word) for word in there}
    names = [*_DRUG.findall(sentence), *_NAME.findall(sentence)]
    return [name for name in names if name.lower() not in MONTHS and not _is_there(name.lower(), there, stems)]


def _is_there(name: str, there: set[str], stems: set[str]) -> bool:
    return stem(name) in stems or any(substance in there for substance in _SUBSTANCES.get(name, ()))
