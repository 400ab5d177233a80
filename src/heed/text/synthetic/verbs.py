"""Which verbs does the built-in corpus know, how are they conjugated, and what do they take?

One lemma a line, six columns:

    English       base [past participle], regular where only the base is given; after "+" what follows it
                  unchanged ("pick + up", "be + hungry")
    German        infinitive; a hyphen cuts off a separable prefix, words before it are a fixed object or "sich";
                  after "/" the stem of the second and third person where its vowel changes
    participle    with "ist" before it where the auxiliary of the perfect is "sein"
    subjects      tags of the nouns that may be subject
    complements   [?][English preposition>]case:tags or [?][English preposition>]German preposition+case:tags;
                  "?" marks what may be left out; "dir" and "loc" are places; "swap" is the German subject of a
                  verb whose English subject is the German dative (I like it: es gefällt mir)
    properties    new (the object is mostly indefinite), worn (the object is nobody else's),
                  timed (goes with a clock time in the present),
                  stative (no progressive), moment (no progressive, no duration), unwilled (no imperative),
                  state (stative and unwilled), accident (moment and unwilled), idiom (accident and noneg),
                  passive (may be passive), noneg (not negated here), at (goes with any place),
                  to (English may say "gives it to him" as well as "gives him it"),
                  manners: fast careful voice well alone ride
"""

from __future__ import annotations

PROPERTIES = {
    "state": ("stative", "unwilled"),
    "accident": ("moment", "unwilled"),
    "idiom": ("moment", "unwilled", "noneg"),
}

VERBS = """
# with an accusative object
read read read          | lesen/lies        | gelesen        | person | acc:text | passive at fast
write wrote written     | schreiben         | geschrieben    | person | acc:written | passive at fast
buy bought bought | kaufen | gekauft | person | acc:thing,clothes,own,food,furniture | passive new
sell sold sold | verkaufen | verkauft | adult | acc:furniture,own,clothes,device,instrument | passive
find found found        | finden            | gefunden       | person | acc:thing,clothes,pet | passive accident new
lose lost lost          | verlieren         | verloren       | person | acc:thing,clothes,money | accident
see saw seen            | sehen/sieh        | gesehen        | person animal | acc:person,animal,sight,nature | state
visit                   | besuchen          | besucht        | person | acc:person,sight,town,building | passive
love                    | lieben            | geliebt        | adult  | acc:kin,grown | state
hate                    | hassen            | gehasst        | person | acc:noise,climate | state
know knew known         | kennen            | gekannt        | person | acc:person,story,song,town | state
like                    | mögen             | gemocht        | person | acc:person | state
meet met met            | treffen/triff     | getroffen      | person | acc:person | at
ask                     | fragen            | gefragt        | person | acc:person | passive
answer                  | beantworten       | beantwortet    | person | acc:question,message | passive fast careful
understand understood understood | verstehen         | verstanden     | person | acc:thought,wording,text | state
learn                   | lernen            | gelernt        | person | acc:wording,song | fast
repeat                  | wiederholen       | wiederholt     | person | acc:wording,question | passive voice
translate               | übersetzen        | übersetzt      | adult  | acc:text,wording | passive careful
forget forgot forgotten | vergessen/vergiss | vergessen      | person | acc:thing,wording,clothes | moment
look                    | suchen            | gesucht        | person | for>acc:thing,clothes,pet,person | at
watch                   | beobachten        | beobachtet     | person | acc:animal,grown | at
hear heard heard        | hören             | gehört         | person | acc:song,music,noise,person | state
sing sang sung          | singen            | gesungen       | person | acc:song | at voice
repair                  | reparieren        | repariert      | adult | acc:vehicle,device,opening | passive careful fast
clean                   | putzen            | geputzt        | person | acc:room,opening | passive careful
wash                    | waschen/wäsch     | gewaschen      | person | acc:clothes,fruit,car,bicycle | passive careful
cook                    | kochen            | gekocht        | person | acc:boiled | passive at new
bake                    | backen            | gebacken       | person | acc:bake | passive new
eat ate eaten           | essen/iss         | gegessen       | person | acc:food | at fast
eat ate eaten           | fressen/friss     | gefressen      | animal | acc:feed | fast
drink drank drunk       | trinken           | getrunken      | person | acc:soft | at fast
drink drank drunk       | trinken           | getrunken      | adult  | acc:strong | at fast
drink drank drunk       | trinken           | getrunken      | animal | acc:lap | fast
carry                   | tragen/träg       | getragen       | person | acc:thing,furniture | careful
wear wore worn          | tragen/träg       | getragen       | person | acc:clothes | unwilled new worn
open                    | öffnen            | geöffnet       | person | acc:opening,lid,message | passive careful
close                   | schließen         | geschlossen    | person | acc:opening,lid | passive careful
break broke broken      | zerbrechen/zerbrich | zerbrochen     | person | acc:fragile | passive accident
use                     | benutzen          | benutzt        | person | acc:tool,device | passive
need                    | brauchen          | gebraucht      | person | acc:thing,clothes,own,money | state new
have had had            | haben             | gehabt         | person | acc:thing,own,pet,problem | state new
paint                   | malen             | gemalt         | person | acc:animal,plant,sight | passive careful new
build built built       | bauen             | gebaut         | adult  | acc:building,boat | passive new
plan                    | planen            | geplant        | adult  | acc:event | passive careful new
organise                | organisieren      | organisiert    | adult  | acc:event | passive new
solve                   | lösen             | gelöst         | person | acc:problem | passive fast
admire                  | bewundern         | bewundert      | person | acc:art,sight,person | stative
hug                     | umarmen           | umarmt         | person | acc:kin |
greet                   | begrüßen          | begrüßt        | person | acc:person | passive
support                 | unterstützen      | unterstützt    | person | acc:person | stative passive
surprise                | überraschen       | überrascht     | person | acc:person | passive moment
make made made          | treffen/triff     | getroffen      | person | acc:choice | new passive
make made made          | machen            | gemacht        | person | acc:flaw | new passive unwilled
correct                 | korrigieren       | korrigiert     | person | acc:flaw,written | passive careful
leave left left         | verlassen/verläss  | verlassen      | person | acc:building,room,town | passive fast
climb                   | besteigen         | bestiegen      | person | acc:mountain,tower | passive
cross                   | überqueren        | überquert      | person | acc:street,river | passive fast careful
win won won             | gewinnen          | gewonnen       | person | acc:game | accident

# separable, with an object
call                    | an-rufen          | angerufen      | person | acc:person | passive
invite                  | ein-laden/läd     | eingeladen     | person | acc:person ?to>zu+dat:event | passive
pick + up               | ab-holen          | abgeholt       | person | acc:person | passive at
wake woke woken + up    | auf-wecken        | aufgeweckt     | person | acc:person | passive careful timed
put put put + on        | an-ziehen         | angezogen      | person | acc:clothes | fast worn
take took taken + off   | aus-ziehen        | ausgezogen     | person | acc:clothes | fast worn
try + on                | an-probieren      | anprobiert     | person | acc:clothes | worn
turn + on               | ein-schalten      | eingeschaltet  | person | acc:switch | passive
turn + off              | aus-schalten      | ausgeschaltet  | person | acc:switch | passive
tidy + up               | auf-räumen        | aufgeräumt     | person | acc:room,surface | passive fast careful
throw threw thrown + away | weg-werfen/wirf   | weggeworfen    | person | acc:text,thing,clothes | passive
write wrote written + down | auf-schreiben     | aufgeschrieben | person | acc:thought,wording | passive careful
shut shut shut          | zu-machen         | zugemacht      | person | acc:opening,lid | careful
look                    | an-sehen/sieh     | angesehen      | person | at>acc:art,sight,clothes | careful
prepare                 | vor-bereiten      | vorbereitet    | adult  | acc:event | passive careful
watch                   | an-sehen/sieh     | angesehen      | person | acc:film,play,game | at careful
listen                  | zu-hören          | zugehört       | person | to>dat:person | careful
give gave given + back  | zurück-geben/gib  | zurückgegeben  | person | to>dat:person acc:thing,money,text |
offer                   | an-bieten         | angeboten      | person | dat:person acc:soft,food | new to
introduce               | vor-stellen       | vorgestellt    | person | to>dat:person acc:person |
read read read          | vor-lesen/lies    | vorgelesen     | person | to>dat:person acc:story | voice
take took taken + part  | teil-nehmen/nimm  | teilgenommen   | person | in>an+dat:event |
think thought thought   | nach-denken       | nachgedacht    | person | about>über+acc:thought | careful
get got got             | ein-steigen       | ist eingestiegen | person | on>in+acc:ride | fast
get got got             | aus-steigen       | ist ausgestiegen | person | off>aus+dat:ride | fast

# separable, without an object
get got got + up        | auf-stehen        | ist aufgestanden | person | | timed
wake woke woken + up    | auf-wachen        | ist aufgewacht | person pet | | accident timed
fall fell fallen + asleep | ein-schlafen/schläf | ist eingeschlafen | person pet | | accident timed
watch + television      | fern-sehen/sieh   | ferngesehen    | person | | alone
do did done + the shopping | ein-kaufen        | eingekauft     | person | | alone timed
go went gone + out      | aus-gehen         | ist ausgegangen | person | | alone
come came come + back   | zurück-kommen     | ist zurückgekommen | person pet | | alone timed
run ran run + away      | weg-laufen/läuf   | ist weggelaufen | animal | | fast
arrive                  | an-kommen         | ist angekommen | person rail | loc:city,station | accident timed
depart                  | ab-fahren/fähr    | ist abgefahren | ride   | | accident timed
move                    | um-ziehen         | ist umgezogen  | adult  | dir:city | unwilled
take took taken + place | statt-finden      | stattgefunden  | event  | loc:city,building | accident timed
begin began begun       | an-fangen/fäng    | angefangen     | event  | | accident timed
sit sat sat + down      | sich hin-setzen   | hingesetzt     | person | |
rest                    | sich aus-ruhen    | ausgeruht      | person | | at

# without an object
sleep slept slept       | schlafen/schläf   | geschlafen     | person animal | | at well
work                    | arbeiten          | gearbeitet     | adult  | | at careful alone
laugh                   | lachen            | gelacht        | person | | voice
cry                     | weinen            | geweint        | person | | voice
smile                   | lächeln           | gelächelt      | person | |
swim swam swum          | schwimmen         | ist geschwommen | person | | well fast
dance                   | tanzen            | getanzt        | person | | at well
hike                    | wandern           | ist gewandert  | person | | alone
play                    | spielen           | gespielt       | kid pet | | at alone
go went gone + for a walk | spazieren gehen   | ist gegangen   | person | | alone
go went gone + swimming | schwimmen gehen   | ist gegangen   | person | | alone
have had had + breakfast | frühstücken       | gefrühstückt   | person | | at alone timed
have had had + lunch    | zu Mittag essen/iss | gegessen       | person | | at alone timed
play + the piano        | Klavier spielen   | gespielt       | person | | well
play + the guitar       | Gitarre spielen   | gespielt       | person | | well
play + football         | Fußball spielen   | gespielt       | person | | well
play + chess            | Schach spielen    | gespielt       | person | | at well
play + cards            | Karten spielen    | gespielt       | person | | at well
ride rode ridden + a bicycle | Fahrrad fahren/fähr | ist gefahren   | person | | careful
hurry                   | sich beeilen      | beeilt         | person | |
catch caught caught + a cold | sich erkälten     | erkältet       | person | | accident
get got got + lost      | sich verlaufen/verläuf | verlaufen      | person | loc:city,outdoors | accident
be + hungry             | Hunger haben      | gehabt         | person pet | | state noneg
be + thirsty            | Durst haben       | gehabt         | person pet | | state noneg
be + lucky              | Glück haben       | gehabt         | person | | state noneg
be + right              | recht haben       | gehabt         | person | | state noneg
be + late               | zu spät kommen    | ist gekommen   | person ride | | state

# places
go went gone            | gehen             | ist gegangen   | person | dir |
run ran run             | laufen/läuf       | ist gelaufen   | person animal | dir:building,room,outdoors | fast
drive drove driven      | fahren/fähr       | ist gefahren   | adult  | dir:city,country,station,airport | fast careful
travel                  | reisen            | ist gereist    | person | dir:city,country | ride
fly flew flown          | fliegen           | ist geflogen   | person | dir:city,country |
live                    | wohnen | gewohnt | person | loc:city,country,house,village,castle | stative alone
stay                    | bleiben           | ist geblieben  | person | loc | alone

# with a dative or a preposition
help                    | helfen/hilf       | geholfen       | person | dat:person |
thank                   | danken            | gedankt        | person | dat:person ?for>für+acc:gift | to
follow                  | folgen            | ist gefolgt    | person animal | dat:grown,animal | fast careful
congratulate            | gratulieren       | gratuliert     | person | dat:person |
trust                   | vertrauen         | vertraut       | person | dat:person | stative
believe                 | glauben           | geglaubt       | person | dat:person | stative
answer                  | antworten         | geantwortet    | person | dat:person | fast
belong                  | gehören           | gehört         | thing own | to>dat:person | state
wait                    | warten            | gewartet       | person | for>auf+acc:person,ride | at careful
speak spoke spoken      | sprechen/sprich   | gesprochen     | person | with>mit+dat:person | voice
talk                    | reden             | geredet        | person | about>über+acc:thought,show,climate | voice
think thought thought   | denken            | gedacht        | person | of>an+acc:person,event | stative
dream dreamed dreamed   | träumen           | geträumt       | person | of>von+dat:own,nature |
laugh                   | lachen            | gelacht        | person | about>über+acc:tale,flaw | voice
play                    | spielen           | gespielt       | kid    | with>mit+dat:pet,kid,ball | at
ask                     | bitten            | gebeten        | person | acc:person for>um+acc:bill,money,answer |
remember                | sich erinnern     | erinnert       | person | an+acc:person,event | state
look + forward          | sich freuen       | gefreut        | person | to>auf+acc:event | state
be + interested         | sich interessieren | interessiert   | person | in>für+acc:show,music,art | state
take took taken + care  | sich kümmern      | gekümmert      | person | of>um+acc:person,pet,plant |
fall fell fallen + in love | sich verlieben    | verliebt       | adult  | with>in+acc:grown | accident
complain                | sich beschweren   | beschwert      | adult  | about>über+acc:noise,climate,work,bill | voice
be + afraid             | Angst haben       | gehabt         | person | of>vor+dat:danger | state noneg
be + fed up             | die Nase voll haben | gehabt         | person | with>von+dat:noise,climate,work | state noneg

# with a dative and an accusative
give gave given         | geben/gib         | gegeben        | person | dat:person acc:thing,money,fruit | passive to
show showed shown       | zeigen            | gezeigt        | person | dat:person acc:art,thing,room,clothes | to
send sent sent          | schicken          | geschickt      | person | dat:person acc:message,gift | to
lend lent lent | leihen | geliehen | person | dat:person acc:car,bicycle,money,tool,clothes | new to
bring brought brought   | bringen           | gebracht       | person | dat:person acc:soft,food,lie | to
buy bought bought       | kaufen            | gekauft        | person | dat:person acc:gift | new
write wrote written     | schreiben         | geschrieben    | person | dat:person acc:message | to
tell told told          | erzählen          | erzählt        | person | dat:person acc:tale | voice to
promise                 | versprechen/versprich | versprochen    | person | dat:person acc:gift | new to
explain                 | erklären          | erklärt        | adult  | to>dat:person acc:thought,wording | careful
recommend               | empfehlen/empfiehl | empfohlen      | adult  | to>dat:person acc:story,show |
describe                | beschreiben       | beschrieben    | person | to>dat:person acc:sight,plan,art | careful
reveal                  | verraten/verrät   | verraten       | person | to>dat:person acc:hidden | voice
steal stole stolen      | stehlen/stiehl    | gestohlen      | person | from>dat:person acc:thing,money | unwilled

# the English subject is the German dative
like                    | gefallen/gefäll   | gefallen       | person | swap:art,clothes,sight,town,song,show | state
like                    | schmecken         | geschmeckt     | person | swap:food,drink | state
miss                    | fehlen            | gefehlt        | person | swap:person,pet | state

# idioms
let let let + the cat out of the bag | die Katze aus dem Sack lassen/läss | gelassen       | person | | idiom
hit hit hit + the nail on the head | den Nagel auf den Kopf treffen/triff | getroffen      | person | | idiom
buy bought bought + a pig in a poke | die Katze im Sack kaufen | gekauft        | adult  | | idiom new
kill + two birds with one stone | zwei Fliegen mit einer Klappe schlagen/schläg | geschlagen     | person | | idiom
turn + a blind eye      | ein Auge zu-drücken | zugedrückt     | adult  | | idiom
get got got + cold feet | kalte Füße bekommen | bekommen       | person | | idiom
pour + oil on the flames | Öl ins Feuer gießen | gegossen       | adult  | | idiom
be + over the moon      | im siebten Himmel sein | ist gewesen    | person | | idiom
"""

# verbs with a clause: English | German | participle | that, whether
CLAUSE_VERBS = """
know knew known     | wissen          | gewusst       | that
say said said       | sagen           | gesagt        | that
think thought thought | denken        | gedacht       | that
believe             | glauben         | geglaubt      | that
hope                | hoffen          | gehofft       | that
hear heard heard    | hören           | gehört        | that
write wrote written | schreiben       | geschrieben   | that
notice              | merken          | gemerkt       | that
claim               | behaupten       | behauptet     | that
promise             | versprechen/versprich | versprochen | that
forget forgot forgotten | vergessen/vergiss | vergessen | that
find found found + out | heraus-finden | herausgefunden | that
be + sure           | sicher sein     | ist gewesen   | that
be + glad           | froh sein       | ist gewesen   | that
ask                 | fragen          | gefragt       | whether
wonder              | sich fragen     | gefragt       | whether
find found found + out | heraus-finden | herausgefunden | whether
"""

# verbs with an infinitive: English | German | participle
INFINITIVE_VERBS = """
try                 | versuchen       | versucht
promise             | versprechen/versprich | versprochen
hope                | hoffen          | gehofft
decide              | beschließen     | beschlossen
plan                | planen          | geplant
begin began begun   | an-fangen/fäng  | angefangen
forget forgot forgotten | vergessen/vergiss | vergessen
refuse              | sich weigern    | geweigert
be + ready          | bereit sein     | ist gewesen
"""

# subject in English and German | verb: clauses about the weather and the like
IMPERSONAL = """
it            | es          | rain              | regnen   | geregnet
it            | es          | snow              | schneien | geschneit
the sun       | die Sonne   | shine shone shone | scheinen | geschienen
the wind      | der Wind    | blow blew blown   | wehen    | geweht
the telephone | das Telefon | ring rang rung    | klingeln | geklingelt
"""
