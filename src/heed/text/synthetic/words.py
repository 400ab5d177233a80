"""Which adjectives, adverbs, names and set phrases does the built-in corpus know? (One entry a line.)"""

from __future__ import annotations

# English [comparative superlative] | German [comparative superlative stem] | tags of the nouns it goes with | kind.
# Without a comparative it is not graded; "more" stands for English "more ... / most ...".
# The kind "colour" may follow another adjective; "ordinal" goes only with "the".
ADJECTIVES = """
old older oldest            | alt älter ältest              | person animal goods building town tree roof
young younger youngest      | jung jünger jüngst            | person animal
new newer newest            | neu neuer neuest              | goods building text opening
big bigger biggest          | groß größer größt             | animal thing furniture building room town fruit tree
small smaller smallest      | klein kleiner kleinst         | animal thing furniture room town fruit child
tall taller tallest         | groß größer größt             | adult boy girl
beautiful more | schön schöner schönst | lady animal plant art clothes sight town nature song colour name
ugly uglier ugliest         | hässlich hässlicher hässlichst | clothes furniture building lamp vase colour
good better best | gut besser best | text show song food drink joke idea answer plan restaurant hotel
bad worse worst             | schlecht schlechter schlechtest | show joke idea answer restaurant hotel weather
expensive more              | teuer teurer teuerst          | goods food restaurant hotel
cheap cheaper cheapest      | billig billiger billigst      | goods restaurant hotel
heavy heavier heaviest      | schwer schwerer schwerst      | furniture lid instrument hammer dictionary
light lighter lightest      | leicht leichter leichtest     | suitcase bag coat box
long longer longest         | lang länger längst            | text show street river event wording title
short shorter shortest      | kurz kürzer kürzest           | text show street event wording thought title
high higher highest         | hoch höher höchst             | tall tree bill price
fast faster fastest         | schnell schneller schnellst   | vehicle horse computer
slow slower slowest         | langsam langsamer langsamst   | bus tram lorry computer waiter
thick thicker thickest      | dick dicker dickst            | book novel dictionary sweater coat blanket carpet
thin thinner thinnest       | dünn dünner dünnst            | book jacket blanket soup
deep deeper deepest         | tief tiefer tiefst            | deep
wide wider widest           | breit breiter breitest        | street river bed
narrow narrower narrowest   | schmal schmaler schmalst      | street bed bridge
dark darker darkest         | dunkel dunkler dunkelst       | room forest coat street colour
bright brighter brightest   | hell heller hellst            | room lamp
warm warmer warmest         | warm wärmer wärmst            | clothes water soup room blanket
cold colder coldest         | kalt kälter kältest           | drink soup room weather lake
hot hotter hottest          | heiß heißer heißest           | soup coffee tea milk
fresh fresher freshest      | frisch frischer frischest     | bread fruit milk egg cake
sweet sweeter sweetest      | süß süßer süßest              | fruit cake apple_pie tea lemonade wine
ripe riper ripest           | reif reifer reifst            | fruit
delicious more              | lecker leckerer leckerst      | food
friendly friendlier friendliest | freundlich freundlicher freundlichst | person
polite politer politest     | höflich höflicher höflichst   | person
strict stricter strictest   | streng strenger strengst      | teacher father mother boss judge
tired more                  | müde müder müdest             | person animal
sick sicker sickest         | krank kränker kränkst         | person animal
healthy healthier healthiest | gesund gesünder gesündest    | person animal
rich richer richest         | reich reicher reichst         | adult
poor poorer poorest         | arm ärmer ärmst               | adult
clever cleverer cleverest   | klug klüger klügst            | person animal
lazy lazier laziest         | faul fauler faulst            | person cat dog
hard-working more           | fleißig fleißiger fleißigst   | person
famous more                 | berühmt berühmter berühmtest  | adult sight art story song show
happy happier happiest      | glücklich glücklicher glücklichst | person
sad sadder saddest          | traurig trauriger traurigst   | person song story film end
funny funnier funniest      | lustig lustiger lustigst      | person tale film play
brave braver bravest        | mutig mutiger mutigst         | person
strong stronger strongest   | stark stärker stärkst         | adult bear lion horse elephant storm coffee
weak weaker weakest         | schwach schwächer schwächst   | person coffee tea
loud louder loudest         | laut lauter lautest           | music noise street radio child
quiet quieter quietest      | ruhig ruhiger ruhigst         | person street town hotel room
clean cleaner cleanest      | sauber sauberer sauberst      | room clothes fragile spoon fork knife
dirty dirtier dirtiest      | schmutzig schmutziger schmutzigst | room clothes fragile vehicle opening
modern more                 | modern moderner modernst      | building device furniture art town
interesting more            | interessant interessanter interessantest | text show event thought art town title
boring more                 | langweilig langweiliger langweiligst | text show event beginning title
exciting more               | spannend spannender spannendst | story show beginning end
difficult more              | schwierig schwieriger schwierigst | problem question wording exam choice
easy easier easiest         | einfach einfacher einfachst   | problem question exam rule
important more              | wichtig wichtiger wichtigst   | text event thought problem choice
strange                     | seltsam                       | story idea noise wording name title end
dangerous more              | gefährlich gefährlicher gefährlichst | danger street mountain
comfortable more            | bequem bequemer bequemst      | chair armchair sofa bed shoe
sharp sharper sharpest      | scharf schärfer schärfst      | knife
elegant more                | elegant eleganter elegantest  | clothes lady
angry angrier angriest      | wütend wütender wütendst      | person
curious more                | neugierig neugieriger neugierigst | person cat monkey
nervous more                | nervös nervöser nervösest     | adult
empty                       | leer                          | holder room refrigerator bus
full                        | voll                          | holder bus train
broken                      | kaputt                        | device vehicle furniture
wet                         | nass                          | clothes street umbrella
red                         | rot                           | thing clothes vehicle furniture rose roof | colour
green                       | grün                          | thing clothes vehicle furniture opening | colour
blue                        | blau                          | thing clothes vehicle furniture flower | colour
black                       | schwarz                       | thing clothes vehicle furniture pet | colour
white                       | weiß                          | thing clothes vehicle furniture pet rose | colour
brown                       | braun                         | thing clothes pet furniture | colour
grey                        | grau                          | clothes vehicle pet mouse elephant | colour
yellow                      | gelb                          | thing clothes vehicle flower | colour
German                      | deutsch                       | text song film food wording town beer wine
French                      | französisch                   | text song film cheese wine wording actress
English                     | englisch                      | text song film wording writer tourist
Italian                     | italienisch                   | film opera singer restaurant painter car
first                       | erst                          | text event plan question mistake | ordinal
second                      | zweit                         | text event plan question mistake | ordinal
third                       | dritt                         | text event question mistake | ordinal
fourth                      | viert                         | text event question | ordinal
fifth                       | fünft                         | text question | ordinal
last                        | letzt                         | text event train bus question | ordinal
"""

# tag of the verb | English | German
MANNERS = """
fast    | quickly      | schnell
fast    | slowly       | langsam
careful | carefully    | sorgfältig
careful | attentively  | aufmerksam
careful | patiently    | geduldig
voice   | loudly       | laut
voice   | quietly      | leise
well    | well         | gut
well    | badly        | schlecht
alone   | alone        | allein
ride    | by train     | mit dem Zug
ride    | by car       | mit dem Auto
ride    | by bus       | mit dem Bus
ride    | by ship      | mit dem Schiff
"""

# tense it is limited to | English | German: only at the head of a sentence, with inversion in German
SENTENCE_ADVERBS = """
any  | unfortunately,  | leider
any  | fortunately,    | zum Glück
any  | of course       | natürlich
any  | perhaps         | vielleicht
any  | nevertheless,   | trotzdem
any  | therefore,      | deshalb
past | suddenly        | plötzlich
past | finally,        | schließlich
"""

# adverbs between the subject and the verb
FREQUENCIES = """
always     | immer
often      | oft
sometimes  | manchmal
usually    | meistens
rarely     | selten
never      | nie
"""

# tense | English | German
TIMES = """
past    | yesterday             | gestern
past    | yesterday evening     | gestern Abend
past    | yesterday morning     | gestern Morgen
past    | the day before yesterday | vorgestern
past    | last night            | letzte Nacht
past    | last week             | letzte Woche
past    | last month            | letzten Monat
past    | last year             | letztes Jahr
past    | last summer           | letzten Sommer
past    | last winter           | letzten Winter
past    | last weekend          | letztes Wochenende
past    | this morning          | heute Morgen
past    | a week ago            | vor einer Woche
past    | a month ago           | vor einem Monat
past    | a few days ago        | vor ein paar Tagen
past    | back then             | damals
past    | today                 | heute
future  | today                 | heute
future  | tomorrow              | morgen
future  | tomorrow morning      | morgen früh
future  | tomorrow evening      | morgen Abend
future  | the day after tomorrow | übermorgen
future  | next week             | nächste Woche
future  | next month            | nächsten Monat
future  | next year             | nächstes Jahr
future  | next summer           | nächsten Sommer
future  | soon                  | bald
future  | this evening          | heute Abend
future  | in an hour            | in einer Stunde
future  | in a few days         | in ein paar Tagen
habit   | every day             | jeden Tag
habit   | every morning         | jeden Morgen
habit   | every evening         | jeden Abend
habit   | every week            | jede Woche
habit   | every year            | jedes Jahr
habit   | in the morning        | am Morgen
habit   | in the evening        | am Abend
habit   | in summer             | im Sommer
habit   | in winter             | im Winter
habit   | on Mondays            | montags
habit   | on Sundays            | sonntags
habit   | at the weekend        | am Wochenende
"""

WEEKDAYS = """
Monday Montag
Tuesday Dienstag
Wednesday Mittwoch
Thursday Donnerstag
Friday Freitag
Saturday Samstag
Sunday Sonntag
"""

MONTHS = """
January Januar
February Februar
March März
April April
May Mai
June Juni
July Juli
August August
September September
October Oktober
November November
December Dezember
"""

FIRST_NAMES = """
f: Anna Maria Julia Sophie Laura Lena Clara Emma Eva Helga Ingrid Katharina Lisa Martha Nina Paula Sarah Susanne
m: Peter Paul Thomas Max Felix Jonas Lukas Martin Michael Karl Otto Stefan David Daniel Simon Tim Oliver Walter
"""

LAST_NAMES = "Weber Schmidt Müller Fischer Becker Wagner Neumann Hoffmann Schulz Krüger Brown Miller Smith Johnson"

# English German (the same when one word)
CITIES = """
Berlin
Hamburg
Dresden
Leipzig
Frankfurt
Stuttgart
Salzburg
Bonn
Paris
London
Madrid
Oslo
Munich München
Cologne Köln
Nuremberg Nürnberg
Hanover Hannover
Vienna Wien
Zurich Zürich
Geneva Genf
Rome Rom
Milan Mailand
Venice Venedig
Florence Florenz
Prague Prag
Warsaw Warschau
Brussels Brüssel
Lisbon Lissabon
Copenhagen Kopenhagen
Athens Athen
Moscow Moskau
"""

# English | German where | German whither | German whence
COUNTRIES = """
Germany         | in Deutschland       | nach Deutschland      | aus Deutschland
Austria         | in Österreich        | nach Österreich       | aus Österreich
France          | in Frankreich        | nach Frankreich       | aus Frankreich
Italy           | in Italien           | nach Italien          | aus Italien
Spain           | in Spanien           | nach Spanien          | aus Spanien
England         | in England           | nach England          | aus England
Poland          | in Polen             | nach Polen            | aus Polen
Switzerland     | in der Schweiz       | in die Schweiz        | aus der Schweiz
Turkey          | in der Türkei        | in die Türkei         | aus der Türkei
the Netherlands | in den Niederlanden  | in die Niederlande    | aus den Niederlanden
"""

# English profession | German of a man | German of a woman
PROFESSIONS = """
teacher        | Lehrer       | Lehrerin
doctor         | Arzt         | Ärztin
lawyer         | Anwalt       | Anwältin
engineer       | Ingenieur    | Ingenieurin
journalist     | Journalist   | Journalistin
baker          | Bäcker       | Bäckerin
gardener       | Gärtner      | Gärtnerin
cook           | Koch         | Köchin
pilot          | Pilot        | Pilotin
painter        | Maler        | Malerin
judge          | Richter      | Richterin
police officer | Polizist     | Polizistin
farmer         | Bauer        | Bäuerin
student        | Student      | Studentin
"""

# "of the": English part noun | tags of the wholes
PARTS = """
roof      | house church museum school theatre
door      | house church car flat library
window    | kitchen bedroom house train car
price     | clothes own flat
colour    | clothes car flower sofa
beginning | story film concert
end       | story film concert
title     | story film opera
name      | street restaurant town hotel
"""

# English measure (plural regular) | German singular and plural | gender | tag of what is measured
MEASURES = """
cup    | Tasse Tassen     | f | coffee tea
glass  | Glas Gläser      | n | water milk wine orange_juice
bottle | Flasche Flaschen | f | water wine beer lemonade
piece  | Stück Stücke     | n | cheese chocolate bread
"""

# whole sentences that cannot be translated word by word
PROVERBS = """
Practice makes perfect.            | Übung macht den Meister.
Better late than never.            | Besser spät als nie.
The early bird catches the worm.   | Morgenstund hat Gold im Mund.
All that glitters is not gold.     | Es ist nicht alles Gold, was glänzt.
It is a piece of cake.             | Es ist ein Kinderspiel.
All is well that ends well.        | Ende gut, alles gut.
Time is money.                     | Zeit ist Geld.
Many hands make light work.        | Viele Hände machen der Arbeit bald ein Ende.
It is all Greek to me.             | Das kommt mir spanisch vor.
"""

GREETINGS = """
Good morning   | Guten Morgen
Good evening   | Guten Abend
Hello          | Hallo
Welcome        | Willkommen
"""
