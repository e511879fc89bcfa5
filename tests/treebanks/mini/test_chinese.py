"""Properties of Chinese that the generated trees must have, checked without the engine."""

from __future__ import annotations

from collections import Counter

import pytest

from spmrl_bench.trees.tree import Tree
from tests.treebanks.mini.language import Language
from tests.treebanks.mini.nodes import Node

LABELS = {
    "TOP", "IP", "CP", "NP", "VP", "PP", "LCP", "QP", "CLP", "DP", "DNP", "DVP", "ADVP", "ADJP",
    "PRN", "FRAG", "UCP", "VRD", "VCD", "VCP", "VSB", "VNV", "VPT", "LST",
}  # fmt: skip
TAGS = {
    "NN", "NR", "NT", "PN", "VV", "VA", "VC", "VE", "AD", "P", "LC", "M", "CD", "OD", "DT", "DEC",
    "DEG", "DEV", "DER", "AS", "SP", "CC", "CS", "BA", "LB", "SB", "ETC", "JJ", "MSP", "PU", "FW",
}  # fmt: skip
# What makes the sentences grammatical is a matter of the grammar, not of the program.
pytestmark = pytest.mark.campaign

LANGUAGE = Language(
    name="chinese", root="TOP", labels=LABELS, tags=TAGS, shortest=(1, 3), mean=(11, 16),
    known=2500, unseen=(0.04, 0.10), capitals=False,
)  # fmt: skip
VERBS = {"VV", "VA", "VC", "VE"}
COMPOUNDS = {"VRD", "VCD", "VCP", "VSB", "VNV", "VPT"}
# Some nouns and all the classifiers that they may have.
CLASSIFIERS = {
    "书": "本", "信": "封", "小说": "部 本 篇", "报纸": "份 张", "论文": "篇", "歌": "首",
    "诗": "首", "电影": "部", "画": "幅 张", "照片": "张 幅", "汽车": "辆", "卡车": "辆",
    "自行车": "辆", "飞机": "架", "船": "艘 条", "火车": "列", "电脑": "台", "机器": "台",
    "桌子": "张", "椅子": "把", "衣服": "件 套", "裤子": "条", "帽子": "顶", "鞋": "双",
    "雨伞": "把", "花": "朵", "树": "棵", "马": "匹", "牛": "头", "狗": "只 条", "鱼": "条",
    "蛇": "条", "大象": "头", "老虎": "只", "银行": "家", "大学": "所", "球队": "支",
    "商店": "家", "医院": "家 所", "公路": "条", "大桥": "座", "森林": "片", "工人": "名 个 位",
    "记者": "名 位", "部长": "位", "职工": "名", "比赛": "场 项 次", "事故": "起 次",
    "资金": "笔", "卫星": "颗", "金牌": "枚 块", "专家": "名 位", "学生": "名 个",
    "农民": "名 个 位", "学者": "名 位", "官员": "名 位 个", "公司": "家 个", "企业": "家 个",
    "报社": "家", "出版社": "家", "军队": "支", "饭店": "家", "中学": "所", "手机": "部 个",
    "手表": "块", "钢琴": "架", "火箭": "枚", "礼物": "件 份", "货物": "批", "文章": "篇",
    "杂志": "本 份", "合同": "份 项", "法律": "部 项", "消息": "条 则", "电视剧": "部",
    "会谈": "次 轮", "活动": "项 次 个", "地震": "次 场", "战争": "场 次", "问题": "个 种",
    "技术": "项 种", "政策": "项 个", "措施": "项 个", "经验": "种 条", "任务": "项 个",
    "机会": "个 次", "公园": "座 个", "教室": "间 个", "铁路": "条", "草原": "片",
    "水库": "座 个", "宾馆": "家 座", "村庄": "个 座", "研究": "项", "改革": "项 场 次",
    "猫": "只", "熊猫": "只", "鸟": "只",
}  # fmt: skip
PUNCTUATION = set("。，、；：？！“”《》（）")  # noqa: RUF001
QUESTION = PUNCTUATION.intersection("？").pop()  # noqa: RUF001
# Nouns that a clause with DEC may complete.
CLAUSE_NOUNS = {
    "消息", "事实", "情况", "现象", "说法", "看法", "观点", "决定", "可能性", "问题", "时候",
}  # fmt: skip
PAST = {"昨天", "前天", "去年", "不久前", "上周", "上个月"}
FUTURE = {"明天", "后天", "明年", "下周", "下个月", "今后", "年底", "将来"}


def test_words_are_in_simplified_characters(trees: list[Tree]) -> None:
    traditional = set("國們個這說對時會來學業經濟書車開關無與麼臺灣電視機")
    for tree in trees:
        for word, tag in zip(tree.words, tree.tags, strict=True):
            assert not traditional & set(word), word
            assert not any(char.isascii() or char.isspace() for char in word), word
            assert (tag == "PU") == (word in PUNCTUATION), (word, tag)


def test_nouns_have_their_classifiers(nodes: list[Node]) -> None:
    """In a noun phrase, the classifier of a QP or DP fits the last noun of the head."""
    checked = 0
    for node in nodes:
        if node.label != "NP" or not node.below or "CC" in node.labels:
            continue
        head = node.below[-1]
        if head.label != "NP" or {"PU", "CC"} & set(head.labels):
            continue
        noun = head.words[-1]
        for modifier in node.below[:-1]:
            if modifier.label in {"QP", "DP"} and noun in CLASSIFIERS:
                units = [n.words[0] for n in modifier.walk() if n.label == "CLP"]
                checked += len(units)
                assert all(unit in CLASSIFIERS[noun].split() for unit in units), node.words
    assert checked > 150


def test_numerals_before_classifiers(trees: list[Tree]) -> None:
    """A classifier follows a numeral, an ordinal or a determiner, and two is 两 before it."""
    checked: Counter[str] = Counter()
    for tree in trees:
        for position, tag in enumerate(tree.tags):
            if tag == "M":
                before, word = tree.tags[position - 1], tree.words[position - 1]
                checked[before] += 1
                assert before in {"CD", "OD", "DT"}, tree.words
                assert word != "二", tree.words
    assert checked["CD"] > 400
    assert checked["DT"] > 300
    assert checked["OD"] > 8


def test_relative_clauses_stand_before_the_noun(nodes: list[Node]) -> None:
    """CP over CP: IP and 的 with a gap inside, before an NP; other clauses have one CP."""
    relative = complement = 0
    for node in nodes:
        for place, child in enumerate(node.below):
            if child.label != "CP":
                continue
            if child.labels == ["CP"]:
                relative += 1
                assert node.label == "NP"
                assert child.below[0].labels == ["IP", "DEC"]
                assert all(later.label != "CP" for later in node.below[place + 1 :])
                assert node.below[-1].label in {"NP", "CP"}
            elif child.labels == ["IP", "DEC"] and node.label == "NP":
                complement += 1
                assert node.below[-1].words[-1] in CLAUSE_NOUNS, node.words
    assert relative > 400
    assert complement > 15


def test_projections_of_the_verb(nodes: list[Node]) -> None:
    """Adverbials stand before an inner VP; a VP holds either a verb or a VP, never nothing."""
    stacked = 0
    for node in nodes:
        if node.label == "VP":
            below = node.labels
            heads = [label for label in below if label in VERBS | COMPOUNDS | {"BA", "LB", "SB"}]
            assert heads or "VP" in below, node.words
            if {"ADVP", "DVP", "LCP"} & set(below):
                stacked += 1
                assert below[-1] == "VP", node.words
                assert not heads
        if node.label == "IP" and node.below[-1].label == "VP":
            assert "VP" not in node.labels[:-1]
    assert stacked > 800


def test_aspect_markers_follow_verbs_and_fit_the_adverbs(nodes: list[Node]) -> None:
    """了, 过 and 着 come right after the verb and not with 正在, 将 or 没有 beside that VP."""
    seen: Counter[str] = Counter()
    for node in nodes:
        below = node.below
        for place, child in enumerate(below):
            if child.label == "AS":
                seen[child.word] += 1
                assert below[place - 1].label in {"VV", "VRD"}, node.words
        if node.label == "VP" and "VP" in node.labels:
            adverbs = {n.words[0] for n in below if n.label == "ADVP"}
            inner = next(n for n in below if n.label == "VP")
            markers = {n.word for n in inner.below if n.label == "AS"}
            if adverbs & {"将", "即将", "正在", "没有", "尚未", "并未"}:
                seen["without"] += 1
                assert not markers, node.words
            if adverbs & {"曾", "曾经"}:
                assert markers <= {"过"}, node.words
    assert seen["了"] > 300
    assert seen["过"] > 30
    assert seen["着"] > 30
    assert seen["without"] > 100


def test_time_fits_aspect(nodes: list[Node]) -> None:
    """A word for the past excludes 将 in its clause, one for the future 了, 过 and 已经."""
    seen: Counter[str] = Counter()
    for node in nodes:
        if node.label != "IP":
            continue
        outer = [n for n in node.below if n.label == "VP"]
        around = node.below + (outer[0].below if outer else ())
        words = {n.words[0] for n in around if n.labels[:1] == ["NT"]}
        if not words or not outer:
            continue
        adverbs = {n.words[0] for n in outer[0].below if n.label == "ADVP"}
        inner = [n for n in outer[0].below if n.label == "VP"] or outer
        markers = {n.word for n in inner[0].below if n.label == "AS"}
        if words & PAST:
            seen["past"] += 1
            assert not adverbs & {"将", "即将", "必将", "将要"}, node.words
        if words & FUTURE:
            seen["future"] += 1
            assert not markers, node.words
            assert not adverbs & {"已", "已经", "曾"}, node.words
    assert seen["past"] > 50
    assert seen["future"] > 15


def test_ba_and_bei(nodes: list[Node]) -> None:
    """把 and long 被 take IP with NP and VP; short 被 takes VP. A verb after 把 is not bare."""
    seen: Counter[str] = Counter()
    for node in nodes:
        if node.label != "VP" or node.below[0].label not in {"BA", "LB", "SB"}:
            continue
        kind = node.below[0].label
        seen[kind] += 1
        if kind == "SB":
            assert node.labels == ["SB", "VP"]
            continue
        assert node.labels == [kind, "IP"]
        assert node.below[1].labels == ["NP", "VP"]
        if kind == "BA":
            assert node.below[0].word in {"把", "将"}
            below = node.below[1].below[1].labels
            assert {"VRD", "VCP", "AS", "PP"} & set(below), node.words
            assert node.below[1].below[0].labels[0] != "QP", node.words
    assert all(seen[kind] > 40 for kind in ("BA", "LB", "SB"))


def test_verb_compounds(nodes: list[Node]) -> None:
    """Two verbs in VRD, VCD, VSB and VCP; V-得/不-V in VPT; A-not-A and V-一-V in VNV."""
    seen: Counter[str] = Counter()
    for node in nodes:
        if node.label not in COMPOUNDS:
            continue
        seen[node.label] += 1
        words, tags = node.words, node.labels
        if node.label == "VPT":
            assert tags[1] in {"DER", "AD"}
            assert words[1] in {"得", "不"}
        elif node.label == "VNV":
            assert words[0] == words[2]
            assert words[1] in {"不", "没", "一"}
            assert (words[1] == "没") == (words[0] == "有")
        elif node.label == "VCP":
            assert words[1] == "为"
            assert tags == ["VV", "VC"]
        else:
            assert len(tags) == 2
            assert set(tags) <= {"VV", "VA"}
            assert words[0] != words[1]
    assert all(seen[label] > 12 for label in COMPOUNDS)


def test_the_three_de_and_localisers(nodes: list[Node]) -> None:
    """的 closes CP and DNP, 地 DVP, 得 stands inside VP or VPT; a localiser closes LCP."""
    closes = {"DEC": "CP", "DEG": "DNP", "DEV": "DVP", "LC": "LCP"}
    forms = {"DEC": {"的"}, "DEG": {"的", "之"}, "DEV": {"地"}, "DER": {"得"}}
    seen: Counter[str] = Counter()
    for node in nodes:
        for place, child in enumerate(node.below):
            if child.label in closes:
                seen[child.label] += 1
                assert node.label == closes[child.label]
                assert place == len(node.below) - 1 > 0
            if child.label in forms:
                assert child.word in forms[child.label]
            if child.label == "DER":
                seen["DER"] += 1
                assert node.label in {"VP", "VPT"}
                assert node.label == "VPT" or node.labels == ["VV", "DER", "VP"]
    assert all(seen[tag] > 20 for tag in ("DEC", "DEG", "DEV", "DER", "LC"))


def test_adjuncts_stand_before_the_verb(nodes: list[Node]) -> None:
    """No PP follows its verb but 在 and 给 phrases that the verb needs; PP has P first."""
    before = after = 0
    for node in nodes:
        if node.label == "PP":
            assert node.labels[0] == "P"
            assert len(node.below) == 2
        if node.label != "VP":
            continue
        for place, child in enumerate(node.below):
            if child.label != "PP":
                continue
            if {"VV", "VRD"} & set(node.labels[:place]):
                after += 1
                assert child.words[0] in {"在", "给"}, node.words
            else:
                before += 1
    assert before > 200
    assert after > 15


def test_conditionals_and_questions(roots: list[Node]) -> None:
    """就, 才 and 也 answer their conjunctions; 吗 needs no other mark of a question."""
    pairs = {"如果": "就 便", "假如": "就 便", "只有": "才", "即使": "也", "哪怕": "也"}
    seen: Counter[str] = Counter()
    for root in roots:
        for node in root.walk():
            if node.label == "CP" and node.below[-1].label == "PU":
                words = node.words
                assert node.labels[:2] == ["IP", "SP"]
                if node.below[1].word == "吗":
                    seen["吗"] += 1
                    assert words[-1] == QUESTION
                    asked = [n.label == "VNV" and "一" not in n.words for n in node.walk()]
                    assert not any(asked), words
                    assert not {"什么", "谁", "多少", "哪", "为什么"} & set(words), words
            if node.label != "IP" or node.below[0].label != "CP":
                continue
            first = node.below[0].words[0]
            adverbs = {w for n in node.below[-2].below if n.label == "ADVP" for w in n.words}
            for conjunction, partners in pairs.items():
                if adverbs & {"就", "便", "才"} and first == conjunction:
                    seen["paired"] += 1
                    assert adverbs & set(partners.split()), node.words
    assert seen["吗"] > 60
    assert seen["paired"] > 15
