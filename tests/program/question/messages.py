"""Messages of the kinds that patients send, written for these tests, each with the question it asks."""

from __future__ import annotations

from typing import NamedTuple


class Sent(NamedTuple):
    """`asked_about` is who the question must speak of: "patient", "writer" (then "I" stays), "family", "other" (the
    writer's words for somebody else stay) or "nobody"."""

    kind: str
    message: str
    question: str
    asked_about: str


MESSAGES = [
    # conditions keep their sense
    Sent(
        "condition",
        "I am on day 9 in hospital. If the kidney does not recover will I need dialysis?",
        "Will the patient need dialysis if the kidney does not recover?",
        "patient",
    ),
    Sent(
        "condition",
        "My dad had a stroke in May. If he stops the clopidogrel could he have another one?",
        "Could the patient have another one if he stops the clopidogrel?",
        "patient",
    ),
    Sent(
        "condition",
        "I take lithium. If I get the stomach flu, should I still take it?",
        "Should the patient still take it if they get the stomach flu?",
        "patient",
    ),
    Sent(
        "condition",
        "We brought my mother home with a drain. Unless it runs dry can it come out on Friday?",
        "Can it come out on Friday unless it runs dry?",
        "nobody",
    ),
    Sent(
        "condition",
        "I had my spleen removed. What happens if I catch a fever while abroad?",
        "What happens if the patient catches a fever while abroad?",
        "patient",
    ),
    Sent(
        "condition",
        "Is it safe to fly if you have a clot in the leg? I was told to ask.",
        "Is it safe to fly if you have a clot in the leg?",
        "nobody",
    ),
    Sent(
        "condition",
        "I have gout. I would like to know if I stop the allopurinol will the attacks come back.",
        "Will the attacks come back if the patient stops the allopurinol?",
        "patient",
    ),
    Sent(
        "condition",
        "When taking warfarin, can I drink cranberry juice? I have had a valve replaced.",
        "Can the patient drink cranberry juice when taking warfarin?",
        "patient",
    ),
    # the writer asks about themselves though someone else is ill
    Sent(
        "own risk",
        "my mother had a stroke. Am I going to have one too?",
        "Am I going to have one too?",
        "writer",
    ),
    Sent(
        "own risk",
        "My brother was found to have Marfan syndrome and he had surgery. Should I be tested?",
        "Should I be tested?",
        "writer",
    ),
    Sent(
        "own risk",
        "My wife has shingles and she is in a lot of pain. Can I catch it from her?",
        "Can I catch it from her?",
        "writer",
    ),
    Sent(
        "own risk",
        "My dad died of pancreatic cancer. He was 61. Will my children and I get it?",
        "Will my children and I get it?",
        "writer",
    ),
    # the writer wants to do something for the patient
    Sent(
        "helping",
        "I look after a man with Parkinson's disease who lives alone. How can I help him find a nurse?",
        "How can I help him find a nurse?",
        "writer",
    ),
    Sent(
        "helping",
        "My husband has cirrhosis and gets confused at night. How can I help him sleep?",
        "How can the family help the patient sleep?",
        "family",
    ),
    Sent(
        "helping",
        "My son has croup. What can I do to bring down his fever?",
        "What can the family do to bring down the patient's fever?",
        "family",
    ),
    Sent(
        "helping",
        "My friend was just told she has lymphoma. What can I do for her?",
        "What can I do for her?",
        "writer",
    ),
    Sent(
        "helping",
        "Mum fell and broke her hip. Should we be worried about her not eating?",
        "Should the family be worried about the patient not eating?",
        "family",
    ),
    # pronouns
    Sent(
        "pronoun",
        "My daughter has lupus. Did the steroid hurt her eyes or her hip?",
        "Did the steroid hurt the patient's eyes or her hip?",
        "patient",
    ),
    Sent(
        "pronoun",
        "Dad (72) was put on a ventilator. Will he breathe on his own again?",
        "Will the patient breathe on his own again?",
        "patient",
    ),
    Sent(
        "pronoun",
        "My grandmother is 90 and fell. Is her blood thinner still needed?",
        "Is the patient's blood thinner still needed?",
        "patient",
    ),
    Sent(
        "pronoun",
        "my boy is 6 and had a seizure at school. does he need an EEG",
        "Does the patient need an EEG?",
        "patient",
    ),
    Sent(
        "pronoun",
        "My 9 month old has a rash. Why is she scratching her ears?",
        "Why is the patient scratching her ears?",
        "patient",
    ),
    Sent(
        "pronoun",
        "My partner had an ablation. Can he drive, and when can he go back to work?",
        "Can the patient drive, and when can he go back to work?",
        "patient",
    ),
    Sent(
        "pronoun",
        "My sister has sickle cell disease. Can her husband give her blood?",
        "Can the patient's husband give her blood?",
        "patient",
    ),
    Sent(
        "another person",
        "My mother has glaucoma. She is 70. Is my father at risk because they lived together?",
        "Is my father at risk because they lived together?",
        "other",
    ),
    # verbs agree
    Sent(
        "verb",
        "I have a lump in my neck. Do I have cancer?",
        "Does the patient have cancer?",
        "patient",
    ),
    Sent(
        "verb",
        "I have hepatitis B. Why do I have to take the tablets for life?",
        "Why does the patient have to take the tablets for life?",
        "patient",
    ),
    Sent(
        "verb",
        "I had a heart attack in June. Am I allowed to lift my grandchild?",
        "Is the patient allowed to lift their grandchild?",
        "patient",
    ),
    Sent(
        "verb",
        "do my mom have diabetes? her sugar was 300 when she fainted",
        "Does the patient have diabetes?",
        "patient",
    ),
    Sent(
        "verb",
        "I am 40 and have asthma. Is it bad that I wake up at night and cough?",
        "Is it bad that the patient wakes up at night and coughs?",
        "patient",
    ),
    Sent(
        "verb",
        "I was given a stoma. What should I do if I am allergic to the glue?",
        "What should the patient do if they are allergic to the glue?",
        "patient",
    ),
    Sent(
        "verb",
        "I've got COPD. How do I know when I'm bad enough for oxygen",
        "How does the patient know when they are bad enough for oxygen?",
        "patient",
    ),
    # nothing inside goes
    Sent(
        "kept word",
        "Why did the doctor stop my allergy pill? I have had hives for years.",
        "Why did the doctor stop the patient's allergy pill?",
        "patient",
    ),
    Sent(
        "kept word",
        "I have afib. Can I just take aspirin instead?",
        "Can the patient just take aspirin instead?",
        "patient",
    ),
    Sent(
        "kept word",
        "I am not diabetic. Why was I not told that prednisone raises sugar?",
        "Why was the patient not told that prednisone raises sugar?",
        "patient",
    ),
    Sent(
        "kept word",
        "Hello doctor, I had a hernia repair. Is it normal that the scar is not numb, doctor?",
        "Is it normal that the scar is not numb?",
        "nobody",
    ),
    # labels and shouted subjects never open the question
    Sent(
        "label",
        "SUBJECT: Shingles vaccine\nMESSAGE: I am having shingles pain, no rash, is it too late to get the vaccine?",
        "Is it too late to get the vaccine?",
        "nobody",
    ),
    Sent(
        "label",
        "MESSAGE: Does sertraline cause weight gain?",
        "Does sertraline cause weight gain?",
        "nobody",
    ),
    Sent(
        "label",
        "Re: my results\nNote: I had the scan on Monday. Is the nodule in my lung benign?",
        "Is the nodule in the patient's lung benign?",
        "patient",
    ),
    Sent(
        "label",
        "SUBJECT: Gallstones MESSAGE: can gallstones come back after the gallbladder is out?",
        "Can gallstones come back after the gallbladder is out?",
        "nobody",
    ),
    Sent(
        "label",
        "Question: is a fever of 101 normal after a flu shot?",
        "Is a fever of 101 normal after a flu shot?",
        "nobody",
    ),
    Sent(
        "shouted subject",
        "SUBJECT: URGENT NEED OF SURGERY INFORMATION\nMESSAGE: I have a torn meniscus. Will it heal without "
        "an operation?",
        "Will it heal without an operation?",
        "nobody",
    ),
    Sent(
        "shouted subject",
        "SUBJECT: LIVER TRANSPLANT\nMESSAGE: How long does the average patient wait?",
        "How long does the average patient wait?",
        "nobody",
    ),
    Sent(
        "shouting",
        "MY FATHER HAD A PACEMAKER PUT IN. WHY IS HE STILL SO TIRED",
        "Why is the patient still so tired?",
        "patient",
    ),
    # no question: the disease by its name
    Sent(
        "disease",
        "SUBJECT: limb-girdle muscular dystrophy\nMESSAGE: My son is 14 and has it. Please help us, we are desperate.",
        "What treatment is advised for limb-girdle muscular dystrophy?",
        "nobody",
    ),
    Sent(
        "disease",
        "I was diagnosed with Sjogren's syndrome two years ago. My eyes burn all day. Please advise.",
        "What treatment is advised for Sjogren's syndrome?",
        "nobody",
    ),
    Sent(
        "disease",
        "my aunt is suffering from motor neuron disease since last year. kindly suggest",
        "What treatment is advised for motor neuron disease?",
        "nobody",
    ),
    Sent(
        "disease",
        "I have lichen planus. Nothing works. Any help would be great!",
        "What treatment is advised for lichen planus?",
        "nobody",
    ),
    Sent(
        "disease",
        "He does not have cancer, they ruled out lymphoma. He has sarcoidosis. Please help my brother.",
        "What treatment is advised for sarcoidosis?",
        "nobody",
    ),
    Sent(
        "disease",
        "Our baby has Pallister-Killian syndrome. We are lost. Thank you.",
        "What treatment is advised for Pallister-Killian syndrome?",
        "nobody",
    ),
    # no question, no disease: what is asked for, or what is told
    Sent(
        "request",
        "I am looking for a specialist for cluster headaches in Ohio. Thank you.",
        "Is there a specialist for cluster headaches in Ohio?",
        "nobody",
    ),
    Sent(
        "request",
        "Please send me information about living with one kidney.",
        "What information is there about living with one kidney?",
        "nobody",
    ),
    Sent(
        "request",
        "I need help to overcome dizziness. It is there all day.",
        "What help is there to overcome dizziness?",
        "nobody",
    ),
    Sent(
        "complaint",
        "For three weeks I have had chest pain and a dry cough. Please help.",
        "What explains chest pain and dry cough, and what treatment is advised?",
        "nobody",
    ),
    Sent(
        "told",
        "My left hand goes white when I hold a cup. Please help.",
        "What is advised when the patient's left hand goes white when they hold a cup?",
        "patient",
    ),
    # asked indirectly
    Sent(
        "indirect",
        "I dont get why they stopped the heparin. My husband has a clot.",
        "Why did they stop the heparin?",
        "nobody",
    ),
    Sent(
        "indirect",
        "Can you please tell me what the side effects of methotrexate are? My wife takes it for arthritis.",
        "What are the side effects of methotrexate?",
        "nobody",
    ),
    Sent(
        "indirect",
        "My uncle has jaundice. I just want to know how serious his condition is.",
        "How serious is the patient's condition?",
        "patient",
    ),
    Sent(
        "indirect",
        "I was wondering if my mother can fly with a chest tube.",
        "Can the patient fly with a chest tube?",
        "patient",
    ),
    Sent(
        "indirect",
        "My wife had a bleed in the brain. I don't understand why she got confused after the operation.",
        "Why did the patient get confused after the operation?",
        "patient",
    ),
    Sent(
        "indirect",
        "I take tacrolimus after a kidney transplant. Do you think I should worry about grapefruit?",
        "Should the patient worry about grapefruit?",
        "patient",
    ),
    Sent(
        "indirect",
        "please let me know whether metformin is safe in kidney failure",
        "Is metformin safe in kidney failure?",
        "nobody",
    ),
    Sent(
        "indirect",
        "My brother has COPD. Any idea what medicine he can take for the cough?",
        "What medicine can the patient take for the cough?",
        "patient",
    ),
    # run-on and hard-wrapped
    Sent(
        "runs on",
        "I had a stent last year, is it ok to have an MRI I am 63 and scared",
        "Is it ok to have an MRI?",
        "nobody",
    ),
    Sent(
        "runs on",
        "my dad has heart failure and his legs are swollen what should we do about the salt",
        "What should the family do about the salt?",
        "family",
    ),
    Sent(
        "runs on",
        "Hi I have celiac disease. is there gluten in these tablets? thanks in advance, regards",
        "Is there gluten in these tablets, given celiac disease?",
        "nobody",
    ),
    Sent(
        "runs on",
        "side effects of amiodarone my dad just started it",
        "What are the side effects of amiodarone?",
        "nobody",
    ),
    Sent(
        "runs on",
        "what is the lasix for my mother takes it twice a day",
        "What is the lasix for?",
        "nobody",
    ),
    Sent(
        "runs on",
        "my mom has a bad heart valve can she have surgery",
        "Can the patient have surgery?",
        "patient",
    ),
    Sent(
        "points back",
        "It says hemangioma, what is that about?",
        "It says hemangioma: what is that about?",
        "nobody",
    ),
    Sent(
        "points back",
        "they took out my drain already is that ok",
        "They took out the patient's drain already: is that ok?",
        "patient",
    ),
    Sent("points back", "my kidneys are they ok", "The patient's kidneys: are they ok?", "patient"),
    Sent(
        "wrapped",
        "My father is 81 and was in the hospital for pneumonia. He is home\nnow but still coughing. How long "
        "will it take until he is\nwell again?",
        "How long will it take until the patient is well again?",
        "patient",
    ),
    Sent(
        "two questions",
        "I had my gallbladder out. Why am I still in pain, and is it normal?",
        "Why is the patient still in pain, and is it normal?",
        "patient",
    ),
    Sent(
        "two questions",
        "My mom has pneumonia. Will she need oxygen? When can she come home?",
        "Will the patient need oxygen, and when can the patient come home?",
        "patient",
    ),
    # too long for fifteen words
    Sent(
        "long",
        "I had a knee replaced. Why did they give me a blood thinner for only two weeks when my neighbour "
        "who had the same operation got it for six?",
        "Why did they give the patient a blood thinner for only two weeks?",
        "patient",
    ),
    Sent(
        "long",
        "Is there any new treatment (other than surgery, which my mother refuses) for a leaking mitral valve "
        "in someone of 88 years?",
        "Is there any new treatment for a leaking mitral valve in someone of 88 years?",
        "nobody",
    ),
    # nobody's illness, or too little said
    Sent(
        "general",
        "Who makes bumetanide?",
        "Who makes bumetanide?",
        "nobody",
    ),
    Sent(
        "general",
        "I am a student and write a paper on sepsis. What are the first signs of sepsis in newborns?",
        "What are the first signs of sepsis in newborns?",
        "nobody",
    ),
    Sent(
        "general",
        "where can I buy a blood pressure cuff for a large arm",
        "Where can I buy a blood pressure cuff for a large arm?",
        "writer",
    ),
    Sent(
        "dangling",
        "I have a fever and a rash. Is this normal?",
        "Is this normal, given fever and rash?",
        "nobody",
    ),
    Sent(
        "dangling",
        "SUBJECT: duchenne muscular dystrophy\nMESSAGE: Are there any trials for this disease?",
        "Are there any trials for duchenne muscular dystrophy?",
        "nobody",
    ),
    # the kinds of two cases from the field
    Sent(
        "label",
        "SUBJECT: Shingles vaccine\nMESSAGE: I am having shingles pain, no rash or blisters, is it too late to get the "
        "vaccine?",
        "Is it too late to get the vaccine?",
        "nobody",
    ),
    Sent(
        "helping",
        "I look after a woman with hepatitis C who cannot pay for treatment. How can I help her find a study?",
        "How can I help her find a study?",
        "writer",
    ),
    Sent("not born yet", "When is my baby due?", "When is my baby due?", "writer"),
    Sent(
        "not born yet",
        "I am 30 weeks pregnant and my baby has not moved today. Should I go in?",
        "Should the patient go in?",
        "patient",
    ),
    # what the question points at stands before it
    Sent(
        "points back",
        "The hospital gave my father haldol and he has Parkinson's. Wasn't that dangerous?",
        "The hospital gave the patient haldol and he has Parkinson's: wasn't that dangerous?",
        "patient",
    ),
    Sent(
        "points back",
        "It has been 3 months since my knee replacement and it still is swollen and hot. Should it be?",
        "It still is swollen and hot: should it be?",
        "nobody",
    ),
    Sent(
        "points back",
        "They gave my daughter morphine. Is that safe?",
        "They gave the patient morphine: is that safe?",
        "patient",
    ),
    Sent(
        "asked indirectly",
        "We were never told why her sodium dropped so low. Can someone explain it?",
        "Why did her sodium drop so low?",
        "nobody",
    ),
    Sent(
        "asked indirectly",
        "I would like to know why they discharged my dad with a fever.",
        "Why did they discharge the patient with a fever?",
        "patient",
    ),
    Sent(
        "asked indirectly",
        "Can you tell me why the surgeon operated so late?",
        "Why did the surgeon operate so late?",
        "nobody",
    ),
    Sent(
        "label",
        "thanks Re: please help me get rid of gout",
        "What can help get rid of gout?",
        "nobody",
    ),
]
