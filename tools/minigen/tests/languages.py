"""What is expected of the treebank of each language, besides the bytes that its grammar gives.

``INVENTORY`` has what may occur. ``ANALYSES`` has a sentence of each with the analysis that a
grammarian gives it: each word is followed by its relation and the number of its head, as Universal
Dependencies have them.
``AGREEMENT`` has one thing in which words have to agree: for a sentence, whether each place
where it can be seen is as the language wants it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Word:
    """A word in lower case; ``head`` is the place of its head from 0, -1 for the root."""

    form: str
    tag: str
    relation: str
    head: int


Sentence = list[Word]


def arabic(sentence: Sentence) -> Iterator[bool]:
    """The adjective of a definite noun is definite."""
    for word in sentence:
        if word.relation == "amod" and sentence[word.head].tag in {"DTNN", "DTNNS"}:
            yield word.tag == "DTJJ"


BASQUE_SINGULAR = {"du", "zuen", "luke", "dezake", "ditu", "zituen", "lituzke", "ditzake"}
BASQUE_PLURAL = {
    "dute", "zuten", "lukete", "dezakete", "dituzte", "zituzten", "lituzkete", "ditzakete",
}  # fmt: skip


def basque(sentence: Sentence) -> Iterator[bool]:
    """``batek`` (one, ergative) has ``du``, ``batzuek`` (some) has ``dute``."""
    auxiliaries = {word.head: word.form for word in sentence if word.relation == "aux"}
    joined = {word.head for word in sentence if word.relation == "conj"}
    for word in sentence:
        noun = sentence[word.head]
        if word.form in {"batek", "batzuek"} and (word.relation, noun.relation) == ("det", "nsubj"):
            form = auxiliaries.get(noun.head) if word.head not in joined else None
            if form in BASQUE_SINGULAR | BASQUE_PLURAL:
                yield (form in BASQUE_SINGULAR) == (word.form == "batek")


CLASSIFIERS = {
    "书": "本", "信": "封", "歌": "首", "诗": "首", "电影": "部", "汽车": "辆", "飞机": "架",
    "船": "艘 条", "火车": "列", "桌子": "张", "椅子": "把", "帽子": "顶", "花": "朵", "树": "棵",
    "马": "匹", "牛": "头", "狗": "只 条", "鱼": "条", "银行": "家", "大学": "所", "商店": "家",
    "公路": "条", "工人": "名 个 位", "记者": "名 位", "部长": "位", "专家": "名 位",
    "比赛": "场 项 次", "文章": "篇", "合同": "份 项", "消息": "条 则", "问题": "个 种",
}  # fmt: skip


def chinese(sentence: Sentence) -> Iterator[bool]:
    """A noun is counted with a classifier of its own."""
    for word in sentence:
        if word.tag == "M" and (units := CLASSIFIERS.get(sentence[sentence[word.head].head].form)):
            yield word.form in units.split()


ENGLISH_SINGULAR = {"a", "an", "every", "each", "another", "this", "that"}
ENGLISH_PLURAL = {"these", "those", "all", "both"}


def english(sentence: Sentence) -> Iterator[bool]:
    """Determiners agree in number with their noun."""
    for word in sentence:
        known = word.relation == "det" and word.form in ENGLISH_SINGULAR | ENGLISH_PLURAL
        if known and sentence[word.head].tag in {"NN", "NNS"}:
            yield (sentence[word.head].tag == "NN") == (word.form in ENGLISH_SINGULAR)


def french(sentence: Sentence) -> Iterator[bool]:
    """The adjective of a plural noun ends in s or x, that of a noun with ``une`` in e."""
    determiners = {word.head: word.form for word in sentence if word.relation == "det"}
    for word in sentence:
        if word.tag == "ADJ" and word.relation == "amod":
            if determiners.get(word.head) in {"les", "des", "ces"}:
                yield word.form[-1] in "sx"
            if determiners.get(word.head) == "une":
                yield word.form[-1] == "e"


# Endings that an adjective may have after a form of the article: weak after der, mixed after ein.
GERMAN_ENDINGS = {
    "der": "e en", "die": "e en", "das": "e", "den": "en", "dem": "en", "des": "en",
    "ein": "er es", "eine": "e", "einen": "en", "einem": "en", "einer": "en", "eines": "en",
}  # fmt: skip


def german(sentence: Sentence) -> Iterator[bool]:
    """Adjectives decline as the article before them wants it."""
    for left, right in pairwise(sentence):
        if (left.tag, right.tag) == ("ART", "ADJA"):
            ending = re.search("e[nrsm]?$", right.form)
            yield ending is not None and ending[0] in GERMAN_ENDINGS[left.form].split()


def hebrew(sentence: Sentence) -> Iterator[bool]:
    """The adjective of a noun with an article has one too."""
    articles = {word.head for word in sentence if word.tag == "DEF"}
    for place, word in enumerate(sentence):
        if word.tag == "JJ" and word.relation == "amod" and word.head in articles:
            yield place in articles


def hungarian(sentence: Sentence) -> Iterator[bool]:
    """The article is ``az`` before a vowel, also of a number, and ``a`` elsewhere."""
    for left, right in pairwise(sentence):
        if left.form in {"a", "az"} and left.tag == "T":
            vowel = re.match(r"[aáeéiíoóöőuúüű5]|1(?:$|,|\d{3}$)", right.form)
            yield left.form == ("az" if vowel else "a")


def korean(sentence: Sentence) -> Iterator[bool]:
    """The particle of the object is 을 after a consonant and 를 after a vowel."""
    for word in sentence:
        if re.fullmatch("nc.[a-z]*[+]jco", word.tag):
            yield word.form[-1] == ("을" if (ord(word.form[-2]) - ord("가")) % 28 else "를")


POLISH_ENDINGS = {
    "ten": "[yi]", "ta": "a", "to": "e", "tego": "ego", "tej": "ej", "tę": "ą", "tym": "[yi]m",
    "tych": "[yi]ch", "te": "e", "tymi": "[yi]mi", "ci": "[yi]", "temu": "emu",
}  # fmt: skip


def polish(sentence: Sentence) -> Iterator[bool]:
    """An adjective behind a demonstrative has its case, gender and number."""
    for left, right in pairwise(sentence):
        if left.tag == "adj" and left.form in POLISH_ENDINGS and right.tag in {"adj", "ppas"}:
            yield re.search(f"{POLISH_ENDINGS[left.form]}$", right.form) is not None


SWEDISH_ENDINGS = {"en": "(?<!a)(?<!ade)", "ett": "t", "de": "(?:[ae]|små)"}
# Adjectives with one form for all genders and numbers; comparatives and participles are others.
SWEDISH_FIXED = re.compile("bra|äkta|(?:sam|nu|fram|då)tida|öde|.*(?:re|st|nde)")


def swedish(sentence: Sentence) -> Iterator[bool]:
    """Adjectives agree with ``en``, ``ett`` and ``de``."""
    for article, adjective, noun in zip(sentence, sentence[1:], sentence[2:], strict=False):
        fits = (article.tag, adjective.tag, noun.tag) == ("DT", "JJ", "NN")
        ending = SWEDISH_ENDINGS.get(article.form) if fits else None
        if ending is not None and not SWEDISH_FIXED.fullmatch(adjective.form):
            yield re.search(f"{ending}$", adjective.form) is not None


#: The property of each language, and how often at least it can be seen in train.
AGREEMENT: dict[str, tuple[Callable[[Sentence], Iterator[bool]], int]] = {
    "arabic": (arabic, 1000),
    "basque": (basque, 100),
    "chinese": (chinese, 30),
    "english": (english, 1000),
    "french": (french, 200),
    "german": (german, 200),
    "hebrew": (hebrew, 300),
    "hungarian": (hungarian, 1500),
    "korean": (korean, 500),
    "polish": (polish, 40),
    "swedish": (swedish, 150),
}

#: Of each language the labels (the first stands over every sentence), the tags (of Korean their
#: parts) and the relations with their subtypes.
INVENTORY = {
    "arabic": ("""TOP ADJP ADVP CONJP FRAG NP PP PRN PRT QP S SBAR SBARQ SQ UCP VP WHADVP WHNP""",
        """CC CD DT DTJJ DTNN DTNNP DTNNS IN JJ JJR NN NNP NNS NOUN_QUANT PRP PRP$ PUNC RB RP VBD
        VBN VBP VN WP WRB""",
        """acl:relcl advcl advmod amod appos aux case cc ccomp conj cop csubj det expl fixed flat
        mark nmod nmod:poss nsubj nsubj:pass nummod obj obl obl:agent parataxis punct root
        xcomp"""),
    "basque": ("""ROOT ADI-KAT AS S SADJ SADV SDET SN SP""",
        """ADB ADB_IZEELI ADI ADI_IZEELI ADJ ADL ADL_IZEELI ADT ADT_IZEELI BEREIZ DET IOR
        IOR_IZEELI IZE IZE_IZEELI LOT PRT PUNT""",
        """acl acl:relcl advcl advmod amod appos aux case cc ccomp compound:lvc conj cop csubj det
        flat iobj mark nmod nmod:poss nsubj nummod obj obl parataxis punct root xcomp"""),
    "chinese": ("""TOP ADJP ADVP CLP CP DNP DP DVP FRAG IP LCP LST NP PP PRN QP UCP VCD VCP VNV VP
        VPT VRD VSB""",
        """AD AS BA CC CD CS DEC DEG DER DEV DT ETC FW JJ LB LC M MSP NN NR NT OD P PN PU SB SP VA
        VC VE VV""",
        """acl acl:relcl advcl advmod amod appos aux aux:pass case cc ccomp clf compound conj cop
        dep det discourse dislocated flat iobj mark nmod nsubj nsubj:pass nummod obj obl obl:agent
        parataxis punct root xcomp"""),
    "english": ("""TOP ADJP ADVP FRAG NP PP PRN PRT QP S SBAR SBARQ SINV SQ VP WHADJP WHADVP
        WHNP""",
        """$ '' , -LRB- -RRB- . : CC CD DT EX IN JJ JJR JJS MD NN NNP NNPS NNS POS PRP PRP$ RB RBR
        RBS RP TO VB VBD VBG VBN VBP VBZ WDT WP WP$ WRB ``""",
        """acl acl:relcl advcl advmod amod appos aux aux:pass case cc ccomp compound compound:prt
        conj cop csubj det expl fixed flat iobj mark nmod nmod:poss nsubj nsubj:pass nummod obj
        obl obl:agent parataxis punct root xcomp"""),
    "french": ("""TOP AP AdP COORD NP PP SENT Sint Srel Ssub VN VPinf VPpart""",
        """ADJ ADJWH ADV ADVWH CC CLO CLR CLS CS DET DETWH ET I NC NPP P P+D P+PRO PONCT PREF PRO
        PROREL PROWH V VIMP VINF VPP VPR VS""",
        """acl acl:relcl advcl advmod amod appos aux aux:pass case cc ccomp compound conj cop
        csubj det discourse expl expl:pv expl:subj flat iobj mark nmod nsubj nsubj:pass nummod obj
        obl obl:agent parataxis punct root xcomp"""),
    "german": ("""TOP AP AVP CAP CNP CS CVP MPN NM NP PP S VP VZ""",
        """$( $, $. ADJA ADJD ADV APPR APPRART ART CARD KON KOUS NE NN PDAT PIAT PIS PPER PPOSAT
        PRELS PRF PTKNEG PTKVZ PTKZU PWAV PWS VAFIN VAINF VAPP VMFIN VVFIN VVINF VVIZU VVPP""",
        """acl:relcl advcl advmod amod appos aux aux:pass case cc ccomp compound:prt conj cop det
        det:poss expl:pv flat iobj mark nmod nsubj nsubj:pass nummod obj obl obl:agent parataxis
        punct root xcomp"""),
    "hebrew": ("""TOP ADJP ADVP FRAG INP INTJ NNPP NP PP PREDP PRN S SBAR SQ SYN_AGR SYN_AT
        SYN_AUX SYN_CC SYN_CD SYN_CDT SYN_COM SYN_DT SYN_H SYN_HAM SYN_IN SYN_INTJ SYN_JJ SYN_JJT
        SYN_MOD SYN_NN SYN_NNP SYN_NNT SYN_POS SYN_PRP SYN_QW SYN_RB SYN_RBR SYN_REL SYN_VB
        SYN_yyCLN SYN_yyCM SYN_yyDASH SYN_yyDOT SYN_yyEXCL SYN_yyLRB SYN_yyQM SYN_yyQUOT SYN_yyRRB
        VP""",
        """AT BN BNT CC CD CDT CONJ COP DEF DTT EX IN INTJ JJ JJT MD NN NNP NNT P POS PREPOSITION
        PRP QW RB REL S_PRN TEMP TTL VB yyCLN yyCM yyDASH yyDOT yyEXCL yyLRB yyQM yyQUOT yyRRB""",
        """acl:relcl advcl advmod amod appos case cc ccomp compound:affix compound:smixut conj cop
        det discourse fixed flat mark nmod nmod:poss nsubj nsubj:pass nummod obj obl obl:agent
        parataxis punct root xcomp"""),
    "hungarian": ("""ROOT ADJP ADVP C0 CP INF0 INF_ NEG NP PA0 PA_ PP PREVERB V0 V_ XP""",
        """A C I M N O P PUNC R S T V Y""",
        """acl:relcl advcl advmod amod appos aux case cc ccomp compound:preverb conj cop det
        discourse flat iobj mark nmod nmod:poss nsubj nummod obj obl parataxis punct root"""),
    "korean": ("""TOP ADJP ADVP AUXP IP MODP NP S VP""",
        """ecc ecs ecx ef ep etm etn ii jca jcc jcj jcm jco jcr jcs jct jp jxc jxt mag maj mma mmd
        nbn nbu ncn ncpa ncps nnc nno npd npp nq paa pad pvg px sf sl sp sr xsa xsm xsn xsv""",
        """acl acl:relcl advcl advmod amod aux ccomp compound conj csubj det discourse dislocated
        flat iobj mark nmod nmod:poss nsubj nummod obj obl punct root xcomp"""),
    "polish": ("""wypowiedzenie condaglt cudz ff fl flicz fno formaczas formalicz formaprzym
        formaprzys formarzecz fpm fpmpt fps fpt fw fwe fzd korelat modpart partykuła pauza przec
        przyimek przyzlo spójnik zaimos zaimprzym zdanie znakkonca""",
        """adj adja adjp adv aglt bedzie brev comp conj fin ger imps impt inf interp num pact pant
        pcon ppas ppron12 ppron3 praet pred prep qub siebie subst winien""",
        """acl acl:relcl advcl advmod amod aux aux:pass case cc cc:preconj ccomp compound conj cop
        det expl:pv flat iobj mark nmod nmod:poss nsubj nsubj:pass nummod nummod:gov obj obl
        obl:agent punct root xcomp"""),
    "swedish": ("""ROOT AP AVP CAP CAVP CNP CPP CS CVP NP PP S VP XP""",
        """AB DT HA HD HP HS IE IN JJ KN MAD MID NN PAD PC PL PM PN PP PS RG RO SN UO VB""",
        """acl:cleft acl:relcl advcl advmod amod appos aux aux:pass case cc cc:preconj ccomp
        compound:prt conj cop csubj det discourse expl expl:pv flat iobj mark nmod nmod:poss nsubj
        nsubj:pass nummod obj obl obl:agent orphan parataxis punct root xcomp"""),
}  # fmt: skip

ANALYSES = {
    "arabic": """
w/cc/9 AqtrAH/nsubj:pass/9 rjl/nmod/2 hA/nmod:poss/3 Al*y/mark/6 lqy/acl:relcl/2 SnAEt/obj/6
hm/nmod:poss/7 ybAE/root/0 fy/case/11 AlHAjz/obl/9 ./punct/9""",
    "basque": """
Iker/nsubj/10 Egaña/flat/1 ministroak/flat/1 fundaziorik/obl/6 politikoenean/amod/4 betetako/acl/7
demokrazia/obj/10 hamar/nummod/9 elkarteri/iobj/10 helaratu/root/0 die/aux/10 ./punct/10""",
    "chinese": """
各/det/2 士兵/nsubj/8 都/advmod/8 把/aux/8 昆明/nmod/6 市长/compound/7 费拉里·泰勒/obj/8
称/root/0 为/compound/8 气象学家/xcomp/8 吗/discourse/8 \uff1f/punct/8""",
    "english": """
They/nsubj/2 proved/root/0 she/nsubj/5 's/aux/5 urging/ccomp/2 those/det/8 injured/amod/8
co-smugglers/obj/5 to/mark/11 be/aux:pass/11 warned/xcomp/5 ./punct/2""",
    "french": """
Les/det/3 grosses/amod/3 reines/nsubj/6 ont/aux/6 -elles/expl:subj/6 commenté/root/0 un/det/8
article/obj/6 mardi/obl/6 2/nummod/11 février/nmod/9 ?/punct/6""",
    "german": """
Eine/det/2 Sportbank/nsubj:pass/10 oder/cc/5 die/det/5 Firma/conj/2 sollten/aux/10 durch/case/9
das/det/9 Gericht/obl:agent/10 verlassen/root/0 werden/aux:pass/10 ./punct/10""",
    "hebrew": """
H/det/2 ILD/nsubj/4 LA/advmod/4 PWTX/root/0 GDRWT/obj/4 ARBEH/nummod/7 MJBXIM/compound:smixut/5
W/cc/9 FKBWT/conj/5 yyDOT/punct/4""",
    "hungarian": """
Az/det/3 amerikai/amod/3 kapitányoknak/obl/6 meg/compound:preverb/6 kell/aux/6 menteniük/root/0
a/det/8 szakszervezet/nmod:poss/9 mesterét/obj/6 ./punct/6""",
    "korean": """
그러나/advmod/8 조진우/nsubj/8 감독은/flat/2 한/det/5 야당에/obl/8 우리의/nmod:poss/7
자유를/obj/8 베풀었다/root/0 ./punct/8""",
    "polish": """
Patrzy/root/0 kilku/nummod:gov/3 dyrektorów/nsubj/1 na/case/7 takie/det/7 okrągłe/amod/7
piłki/obl/1 ,/punct/11 które/nsubj:pass/11 zostały/aux:pass/11 wybrane/acl:relcl/7 ./punct/1""",
    "swedish": """
Den/det/3 stora/amod/3 idén/obj/11 har/aux/11 statsråden/nsubj/11 som/nsubj:pass/8 blir/aux:pass/8
räddade/acl:relcl/5 av/case/10 riksdagen/obl:agent/8 saknat/root/0 ./punct/11""",
}  # fmt: skip
