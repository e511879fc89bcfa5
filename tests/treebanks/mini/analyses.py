"""Sentences of every mini treebank with the analysis that a grammarian gives them.

Each word is followed by its relation and the number of its head, as Universal Dependencies have
them: content words are heads, the first conjunct is the head of a coordination, and a comma
belongs to the clause or conjunct that it sets off. Empty lines part the sentences.
"""

from __future__ import annotations

ANALYSES = {
    "arabic": """
bdA/root/0 Alfryq/nsubj/1 AlqA}m/amod/2 yEln/xcomp/1 An/mark/7 AlAsr/nsubj/7 Awqft/ccomp/4
fy/case/9 AlErAq/obl/7 Akbr/amod/11 hAtf/obj/7 ./punct/1

kAnt/aux/3 AlqAEp/nsubj/3 tDm/root/0 fy/case/5 AlSyn/obl/3 mHmwd/obj/3 frnjyp/flat/6 w/cc/9
sAlm/conj/6 ./punct/3

w/cc/9 AqtrAH/nsubj:pass/9 rjl/nmod/2 hA/nmod:poss/3 Al*y/mark/6 lqy/acl:relcl/2 SnAEt/obj/6
hm/nmod:poss/7 ybAE/root/0 fy/case/11 AlHAjz/obl/9 ./punct/9
""",
    "basque": """
Iker/nsubj/10 Egaña/flat/1 ministroak/flat/1 fundaziorik/obl/6 politikoenean/amod/4
betetako/acl/7 demokrazia/obj/10 hamar/nummod/9 elkarteri/iobj/10 helaratu/root/0 die/aux/10
./punct/10

Bost/nummod/2 astetan/obl/7 ,/punct/7 banku/nsubj/7 batek/det/4 uste/compound:lvc/7 du/root/0
edozein/det/9 txosten/obj/10 irakurri/ccomp/7 zuela/aux/10 ./punct/7

Zuen/nmod:poss/2 asmoa/nsubj/4 hotelean/obl/4 gaitzetsi/advcl/7 delako/aux/4 ,/punct/4
demokratikoak/root/0 ziren/cop/7 olerki/nsubj/7 desberdin/amod/9 batzuk/det/9 ./punct/7
""",
    "chinese": """
各/det/2 士兵/nsubj/8 都/advmod/8 把/aux/8 昆明/nmod/6 市长/compound/7
费拉里·泰勒/obj/8 称/root/0 为/compound/8 气象学家/xcomp/8 吗/discourse/8
\uff1f/punct/8

十分/advmod/2 活跃/acl/4 的/mark/2 大学/nsubj/6 将/advmod/6 淘汰/root/0 外籍/amod/8
会计/obj/6 和/cc/10 教练/conj/8 。/punct/6

员工/nsubj:pass/3 被/aux:pass/3 淘汰/root/0 。/punct/3
""",
    "english": """
They/nsubj/2 proved/root/0 she/nsubj/5 's/aux/5 urging/ccomp/2 those/det/8 injured/amod/8
co-smugglers/obj/5 to/mark/11 be/aux:pass/11 warned/xcomp/5 ./punct/2

$/nsubj:pass/5 5.2/compound/3 million/nummod/1 were/aux:pass/5 invested/root/0 in/case/10
more/advmod/9 than/fixed/7 twelve/nummod/10 departments/obl/5 ./punct/5

An/det/2 interview/nsubj/11 about/case/4 President/nmod/2 Okafor/flat/4 never/advmod/11
will/aux/11 be/cop/11 an/det/11 earlier/amod/11 festival/root/0 ./punct/11
""",
    "french": """
Il/expl:subj/2 faudrait/root/0 que/mark/6 les/det/5 responsables/nsubj/6 jouent/ccomp/2
leur/det/10 très/advmod/9 grand/amod/10 changement/obj/6 ./punct/2

La/det/2 règle/nsubj:pass/11 ,/punct/7 que/obj/7 dix/nummod/6 policiers/nsubj/7
retiraient/acl:relcl/2 ,/punct/7 a/aux/11 été/aux:pass/11 présentée/root/0 ./punct/11

Les/det/3 grosses/amod/3 reines/nsubj/6 ont/aux/6 -elles/expl:subj/6 commenté/root/0 un/det/8
article/obj/6 mardi/obl/6 2/nummod/11 février/nmod/9 ?/punct/6
""",
    "german": """
Eine/det/2 Sportbank/nsubj:pass/10 oder/cc/5 die/det/5 Firma/conj/2 sollten/aux/10 durch/case/9
das/det/9 Gericht/obl:agent/10 verlassen/root/0 werden/aux:pass/10 ./punct/10

Der/det/2 Junge/nsubj/6 für/case/5 seine/det:poss/5 Onkel/nmod/2 erlaubte/root/0 dem/det/8
Polizisten/iobj/6 lange/amod/10 Vorstellungen/obj/6 ./punct/6

"/punct/10 Unsere/det:poss/3 Könige/nsubj/10 ,/punct/8 die/nsubj/8 zum/case/7 Experten/obl/8
reisen/acl:relcl/3 ,/punct/8 fliehen/ccomp/15 zum/case/12 Soldaten/obl/10 "/punct/10 ,/punct/10
meinte/root/0 ein/det/18 leiser/amod/18 König/nsubj/15 ./punct/15
""",
    "hebrew": """
H/det/2 ILD/nsubj/4 LA/advmod/4 PWTX/root/0 GDRWT/obj/4 ARBEH/nummod/7 MJBXIM/compound:smixut/5
W/cc/9 FKBWT/conj/5 yyDOT/punct/4

L/case/3 H/det/3 SWKNT/obl/6 H/det/5 EQIBH/amod/3 IHIW/root/0 MAH/nummod/8 TKNIWT/nsubj/6
JWBWT/amod/8 W/cc/11 RFWMWT/conj/9 yyDOT/punct/6

HWA/nsubj/2 HCHIR/root/0 yyCLN/punct/5 LA/advmod/5 NITN/ccomp/2 LHSKIM/xcomp/5 LBLWE/xcomp/6
AT/case/9 KLI/obj/7 H/det/11 RKB/compound:smixut/9 yyDOT/punct/2
""",
    "hungarian": """
Az/det/3 amerikai/amod/3 kapitányoknak/obl/6 meg/compound:preverb/6 kell/aux/6 menteniük/root/0
a/det/8 szakszervezet/nmod:poss/9 mesterét/obj/6 ./punct/6

Regények/obl/3 szerint/case/1 visszaküldtük/root/0 megbukva/advcl/3 azt/det/7 a/det/7
dobozt/obj/3 ,/punct/10 amely/nsubj/10 sárga/acl:relcl/7 ./punct/3

A/det/2 csapat/nmod:poss/3 rendőreinek/obl/8 és/cc/5 dr./conj/3 Nemes/flat/5 Lászlónak/flat/5
nincs/root/0 döntésük/nsubj/8 ./punct/8
""",
    "korean": """
그러나/advmod/8 조진우/nsubj/8 감독은/flat/2 한/det/5 야당에/obl/8 우리의/nmod:poss/7
자유를/obj/8 베풀었다/root/0 ./punct/8

슬픔은/nsubj/8 다른/det/4 옳은/amod/4 신뢰를/obj/5 알지/acl:relcl/7 않은/aux/5
신부님과/obl/8 대립하겠습니다/root/0 ./punct/8

청소를/obj/2 초래했던/acl:relcl/5 몹시/advmod/4 중요한/amod/5 사용을/obj/9 검사와/nsubj/9
우리/nmod:poss/8 배우가/conj/6 느꼈다/root/0 ./punct/9
""",
    "polish": """
Patrzy/root/0 kilku/nummod:gov/3 dyrektorów/nsubj/1 na/case/7 takie/det/7 okrągłe/amod/7
piłki/obl/1 ,/punct/11 które/nsubj:pass/11 zostały/aux:pass/11 wybrane/acl:relcl/7 ./punct/1

Malarka/nsubj/2 wyjaśniła/root/0 ,/punct/7 że/mark/7 w/case/6 muzeach/obl/7 goszczono/ccomp/2
prezydenta/obj/7 Mazura/flat/8 i/cc/11 Malinowską/conj/8 ./punct/2

Młodzież/nsubj/2 powinna/root/0 oficjalnie/advmod/4 zatrudnić/xcomp/2 autora/obj/4 z/case/7
Polski/nmod/5 i/cc/9 pytała/conj/2 o/case/11 powody/obl/9 ./punct/2
""",
    "swedish": """
Nödvändigt/root/0 är/cop/1 att/mark/6 de/nsubj:pass/6 blir/aux:pass/6 drivna/csubj/1 av/case/10
en/det/10 otålig/amod/10 flykting/obl:agent/6 ./punct/1

Det/expl/3 var/cop/3 riksdagen/root/0 som/nsubj/5 lade/acl:cleft/3 fram/compound:prt/5 ett/det/8
register/obj/5 förra/amod/10 våren/obl/5 ./punct/3

Den/det/3 stora/amod/3 idén/obj/11 har/aux/11 statsråden/nsubj/11 som/nsubj:pass/8
blir/aux:pass/8 räddade/acl:relcl/5 av/case/10 riksdagen/obl:agent/8 saknat/root/0 ./punct/11
""",
}  # fmt: skip
