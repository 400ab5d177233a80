"""Frequent short words of about sixty languages, which identify a language when no text in it is available."""

from __future__ import annotations

_TABLE = """
af die van en het in is nie te dat vir hy met ek op om aan ons was sy wat jy as hulle maar ook sal kan daar by uit
bg и на да се в не за от са като по това той ще които тя до има беше съм при един или още само може във
ca de la que el i a en no per és un amb una les els es del al com més però seva aquest aquesta són va hi ho
cs a se v na je že to s z do i o by jsem si ale jako pro jsou byl tak po za jeho když není jen které také
da og i at det er en til af den på for som ikke de med han har jeg var et men vi fra sig der om ved hun mig
de der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an er hat aus sie nach ich
el και το να του η της με που την από για είναι ο στο δεν τα σε θα οι τον στην τους μια ως αυτό αλλά
en the of and to in a is that for it was on with as he be at by this had not are but from or have an they which you
eo la de kaj en al ne estas mi li ke por kun sed oni tiu ĝi el pli kiu kiel aŭ ili vi pri
es de la que el en y a los se del las un por con no una su para es al lo como más pero sus le ya o este sí porque
et ja on ei see et ta ma kui oli mis ka oma aga siis või nii kes tema olen meie ole nagu
eu eta da ez zen bat du ere dira izan ziren bere hau zuen egin baina hori dut beste oso
fi ja on ei se että oli hän mutta ovat kun niin myös mitä sen minä tämä joka ole vain kuin olen hänen
fr de la le et les des en un du une que est pour qui dans a par plus pas au sur ne se ce il sont avec son nous je
ga agus an na a ar is tá i go sé ní bhí le don leis sin seo ach ag do
gl de a que o e en do da un os no na por con unha as para se ao máis como pero foi non
hr i u je se na da su za od s a iz kao koji ali što bio nije sam bi o ili kako već samo
hu a az és hogy nem is egy ez volt meg de van csak el már ha mint még azt én kell nagyon
id yang dan di itu dengan untuk tidak ini dari dalam akan pada juga saya ke karena tersebut bisa ada mereka kami
is og að í á er sem ekki það við um til með fyrir var en hann ég hún þau eru frá
it di e che la il un a per in una è non con i del si le da sono al come ma più della anche lo nel questo
la et in est non ad ut cum qui quod sed ex quae esse aut per si hoc enim atque
lt ir yra kad į iš su tai bet kaip ne buvo jis apie per tik dar nuo jau savo mes
lv un ir ka uz no ar tas par bet kā nav bija viņš es mēs arī lai šis ko
mk и на во да се за од е не со што ги како но тој беше ќе сум или по
ms yang dan di itu dengan untuk tidak ini dari dalam akan pada juga saya ke kerana boleh ada mereka
mt u li ta fil il ma hu kien mill dan biex għal jew minn huma din
nb og i er det som på en til av for at med ikke de har den jeg et var han om men vi fra seg
nl de en het van een in is dat te op die voor met zijn niet aan er om ook als bij maar dan ze door hij naar heb
no og i er det som på en til av for at med ikke de har den jeg et var han om men vi fra seg
pl w i z na nie się do to że jest o jak po co ale za od czy tak by jego był są przez dla już
pt de a o que e do da em um para é com não uma os no se na por mais as dos como mas foi ao ele das seu
ro și de în a la cu nu este pe că o un din să mai se care au fost sau ca dar lui ei
ru и в не на я быть он с что а по это она как к у но они мы весь за из от так же для вы
sk a sa v na je že to s z do aj o by som si ale ako pre sú bol tak po za jeho keď nie len ktoré
sl in je v na da se za so ki z pa ne od kot tudi bil po ali sem še
sq dhe në e të i një për me nuk është që nga ka ai ishte por si më kjo
sr и у је да се на су за од с а као који али што није сам би о
sv och i att det som en på är av för med till den inte har de jag ett om var han men vi från sig hon
sw na ya wa kwa ni katika la za cha kuwa hii hiyo yake lakini kama watu sana
tr ve bir bu da de için çok ne o ile gibi daha var ama kadar sonra mi ben olarak olan her
uk і в не на я що з він це як та до але вона за у від ми про так є його вони
uz va bu bir bilan uchun ham edi emas bo'lgan lekin men u
vi và của là có không một những được cho trong người này với các đã khi để tôi đó cũng như từ nhưng
zh 的 是 不 了 在 人 有 我 他 这 个 们 中 来 上 大 为 和 国 地 到 以 说 时 要 就 出 会
ja の に は を た が で て と し れ さ ある いる も する から な こと として い や れる など なっ ない この
ko 이 그 는 을 를 에 의 가 은 로 하다 있다 것 수 한 에서 으로 있는 하는
"""

FREQUENT_WORDS = {words[0]: frozenset(words[1:]) for words in map(str.split, _TABLE.strip().splitlines())}
"""By language code."""
