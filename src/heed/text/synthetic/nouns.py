"""Which nouns does the built-in corpus know, how are they declined, and what may be said of them?

One lemma a line: English (singular/plural where not regular) | German with article | genitive | plural | tags.
A tag is a semantic class which verbs and adjectives ask for (see `verbs.py`, `words.py`) or a property:

    weak        weak masculine: accusative and dative are as the plural (den Studenten)
    mass        has no plural here and takes no English "a"
    kin         relatives and friends: always somebody's ("my brother")
    compound    a German compound worth counting as a phenomenon
    lie stand hang   how German says where the thing is (liegt, steht, hängt)

Added to these are: the English noun itself (with "_" for a space), "role" for people who are not kin, "grown"
for the adults among them, and the groups below.
"""

from __future__ import annotations

GROUPS = {"goods": ("thing", "furniture", "clothes", "vehicle", "device", "instrument", "own")}

NOUNS = """
# people
man/men            | der Mann              | Mannes           | Männer            | person adult
woman/women        | die Frau              | Frau             | Frauen            | person adult lady
boy                | der Junge             | Jungen           | Jungen            | person weak kid young
girl               | das Mädchen           | Mädchens         | Mädchen           | person kid young
child/children     | das Kind              | Kindes           | Kinder            | person kid young
father             | der Vater             | Vaters           | Väter             | person kin adult
mother             | die Mutter            | Mutter           | Mütter            | person kin adult
brother            | der Bruder            | Bruders          | Brüder            | person kin
sister             | die Schwester         | Schwester        | Schwestern        | person kin
son                | der Sohn              | Sohnes           | Söhne             | person kin
daughter           | die Tochter           | Tochter          | Töchter           | person kin
uncle              | der Onkel             | Onkels           | Onkel             | person kin adult
aunt               | die Tante             | Tante            | Tanten            | person kin adult
grandfather        | der Großvater         | Großvaters       | Großväter         | person kin adult
grandmother        | die Großmutter        | Großmutter       | Großmütter        | person kin adult
friend             | der Freund            | Freundes         | Freunde           | person kin
neighbour          | der Nachbar           | Nachbarn         | Nachbarn          | person kin adult weak
colleague          | der Kollege           | Kollegen         | Kollegen          | person kin adult weak
boss/bosses        | der Chef              | Chefs            | Chefs             | person kin adult
teacher            | der Lehrer            | Lehrers          | Lehrer            | person adult
pupil              | der Schüler           | Schülers         | Schüler           | person young
student            | der Student           | Studenten        | Studenten         | person adult weak
doctor             | der Arzt              | Arztes           | Ärzte             | person adult
nurse              | die Krankenschwester  | Krankenschwester | Krankenschwestern | person adult compound lady
farmer             | der Bauer             | Bauern           | Bauern            | person adult weak
customer           | der Kunde             | Kunden           | Kunden            | person adult weak
police officer     | der Polizist          | Polizisten       | Polizisten        | person adult weak
journalist         | der Journalist        | Journalisten     | Journalisten      | person adult weak
lawyer             | der Anwalt            | Anwalts          | Anwälte           | person adult
judge              | der Richter           | Richters         | Richter           | person adult
baker              | der Bäcker            | Bäckers          | Bäcker            | person adult
cook               | der Koch              | Kochs            | Köche             | person adult
waiter             | der Kellner           | Kellners         | Kellner           | person adult
waitress           | die Kellnerin         | Kellnerin        | Kellnerinnen      | person adult lady
actress            | die Schauspielerin    | Schauspielerin   | Schauspielerinnen | person adult lady
princess           | die Prinzessin        | Prinzessin       | Prinzessinnen     | person young
king               | der König             | Königs           | Könige            | person adult
queen              | die Königin           | Königin          | Königinnen        | person adult lady
singer             | der Sänger            | Sängers          | Sänger            | person adult
painter            | der Maler             | Malers           | Maler             | person adult
writer             | der Schriftsteller    | Schriftstellers  | Schriftsteller    | person adult compound
engineer           | der Ingenieur         | Ingenieurs       | Ingenieure        | person adult
soldier            | der Soldat            | Soldaten         | Soldaten          | person adult weak
tourist            | der Tourist           | Touristen        | Touristen         | person adult weak
pilot              | der Pilot             | Piloten          | Piloten           | person adult weak
artist             | der Künstler          | Künstlers        | Künstler          | person adult
gardener           | der Gärtner           | Gärtners         | Gärtner           | person adult
guest              | der Gast              | Gastes           | Gäste             | person adult
mayor              | der Bürgermeister     | Bürgermeisters   | Bürgermeister     | person adult compound
thief/thieves      | der Dieb              | Diebes           | Diebe             | person adult
musician           | der Musiker           | Musikers         | Musiker           | person adult
worker             | der Arbeiter          | Arbeiters        | Arbeiter          | person adult
hairdresser        | der Friseur           | Friseurs         | Friseure          | person adult
president          | der Präsident         | Präsidenten      | Präsidenten       | person adult weak
hero/heroes        | der Held              | Helden           | Helden            | person adult weak
secretary          | die Sekretärin        | Sekretärin       | Sekretärinnen     | person adult lady

# animals
dog                | der Hund              | Hundes           | Hunde             | animal pet danger
cat                | die Katze             | Katze            | Katzen            | animal pet
horse              | das Pferd             | Pferdes          | Pferde            | animal pet
rabbit             | das Kaninchen         | Kaninchens       | Kaninchen         | animal pet
bird               | der Vogel             | Vogels           | Vögel             | animal
cow                | die Kuh               | Kuh              | Kühe              | animal
mouse/mice         | die Maus              | Maus             | Mäuse             | animal danger
duck               | die Ente              | Ente             | Enten             | animal
pig                | das Schwein           | Schweins         | Schweine          | animal
bear               | der Bär               | Bären            | Bären             | animal weak danger
lion               | der Löwe              | Löwen            | Löwen             | animal weak danger
monkey             | der Affe              | Affen            | Affen             | animal weak
elephant           | der Elefant           | Elefanten        | Elefanten         | animal weak
wolf/wolves        | der Wolf              | Wolfes           | Wölfe             | animal danger
fox                | der Fuchs             | Fuchses          | Füchse            | animal
snake              | die Schlange          | Schlange         | Schlangen         | animal danger

# things to read and to write
book               | das Buch              | Buches           | Bücher            | text story long lie gift
novel              | der Roman             | Romans           | Romane            | text story long lie gift
dictionary         | das Wörterbuch        | Wörterbuches     | Wörterbücher      | text lie gift compound
letter             | der Brief             | Briefes          | Briefe            | text message lie
email              | die E-Mail            | E-Mail           | E-Mails           | text message
message            | die Nachricht         | Nachricht        | Nachrichten       | text message
postcard           | die Postkarte         | Postkarte        | Postkarten        | text message lie compound
newspaper          | die Zeitung           | Zeitung          | Zeitungen         | text lie
magazine           | die Zeitschrift       | Zeitschrift      | Zeitschriften     | text lie compound
article            | der Artikel           | Artikels         | Artikel           | text written
report             | der Bericht           | Berichts         | Berichte          | text written
poem               | das Gedicht           | Gedichts         | Gedichte          | text story written
story              | die Geschichte        | Geschichte       | Geschichten       | text story written tale
fairy tale         | das Märchen           | Märchens         | Märchen           | text story tale
joke               | der Witz              | Witzes           | Witze             | tale
contract           | der Vertrag           | Vertrags         | Verträge          | text lie

# works of art, music, games
picture            | das Bild              | Bildes           | Bilder            | art gift hang
photo              | das Foto              | Fotos            | Fotos             | art hang
map                | die Landkarte         | Landkarte        | Landkarten        | art hang compound
film               | der Film              | Films            | Filme             | show
play               | das Theaterstück      | Theaterstücks    | Theaterstücke     | show written compound
song               | das Lied              | Liedes           | Lieder            | song
opera              | die Oper              | Oper             | Opern             | show
music              | die Musik             | Musik            | -                 | music mass

# food and drink
bread              | das Brot              | Brotes           | -                 | food bake mass feed
cake               | der Kuchen            | Kuchens          | Kuchen            | food bake
apple pie          | der Apfelkuchen       | Apfelkuchens     | Apfelkuchen       | food bake compound
biscuit            | der Keks              | Kekses           | Kekse             | food bake
pizza              | die Pizza             | Pizza            | Pizzas            | food bake
apple              | der Apfel             | Apfels           | Äpfel             | food fruit feed
pear               | die Birne             | Birne            | Birnen            | food fruit feed
banana             | die Banane            | Banane           | Bananen           | food fruit
strawberry         | die Erdbeere          | Erdbeere         | Erdbeeren         | food fruit
tomato/tomatoes    | die Tomate            | Tomate           | Tomaten           | food fruit
potato/potatoes    | die Kartoffel         | Kartoffel        | Kartoffeln        | food boiled feed
egg                | das Ei                | Eies             | Eier              | food boiled
soup               | die Suppe             | Suppe            | Suppen            | food boiled
vegetable soup     | die Gemüsesuppe       | Gemüsesuppe      | Gemüsesuppen      | food boiled compound
rice               | der Reis              | Reises           | -                 | food boiled mass
meat               | das Fleisch           | Fleisches        | -                 | food boiled mass feed
cheese             | der Käse              | Käses            | -                 | food mass
chocolate          | die Schokolade        | Schokolade       | -                 | food mass
ice cream          | das Eis               | Eises            | -                 | food mass
water              | das Wasser            | Wassers          | -                 | drink mass lap soft
milk               | die Milch             | Milch            | -                 | drink mass lap soft
coffee             | der Kaffee            | Kaffees          | -                 | drink mass strong
tea                | der Tee               | Tees             | -                 | drink mass soft
wine               | der Wein              | Weins            | -                 | drink mass strong
red wine           | der Rotwein           | Rotweins         | -                 | drink mass compound strong
beer               | das Bier              | Biers            | -                 | drink mass strong
orange juice       | der Orangensaft       | Orangensafts     | -                 | drink mass compound soft
lemonade           | die Limonade          | Limonade         | -                 | drink mass soft

# vehicles
car                | das Auto              | Autos            | Autos             | vehicle own
bicycle            | das Fahrrad           | Fahrrads         | Fahrräder         | vehicle own compound
motorcycle         | das Motorrad          | Motorrads        | Motorräder        | vehicle own compound
boat               | das Boot              | Bootes           | Boote             | vehicle own
bus/buses          | der Bus               | Busses           | Busse             | vehicle ride rail
train              | der Zug               | Zuges            | Züge              | vehicle ride rail
tram               | die Straßenbahn       | Straßenbahn      | Straßenbahnen     | vehicle ride compound rail
taxi               | das Taxi              | Taxis            | Taxis             | vehicle
ship               | das Schiff            | Schiffes         | Schiffe           | vehicle ride
plane              | das Flugzeug          | Flugzeugs        | Flugzeuge         | vehicle ride compound
lorry              | der Lastwagen         | Lastwagens       | Lastwagen         | vehicle compound

# furniture and parts of houses
table              | der Tisch             | Tisches          | Tische            | furniture surface stand
desk               | der Schreibtisch      | Schreibtisches   | Schreibtische     | furniture surface stand compound
chair              | der Stuhl             | Stuhls           | Stühle            | furniture surface stand
armchair           | der Sessel            | Sessels          | Sessel            | furniture surface stand
sofa               | das Sofa              | Sofas            | Sofas             | furniture surface stand
bed                | das Bett              | Bettes           | Betten            | furniture surface stand
cupboard           | der Schrank           | Schranks         | Schränke          | furniture stand
bookcase           | das Bücherregal       | Bücherregals     | Bücherregale      | furniture stand compound
mirror             | der Spiegel           | Spiegels         | Spiegel           | furniture hang
carpet             | der Teppich           | Teppichs         | Teppiche          | furniture lie
door               | die Tür               | Tür              | Türen             | opening
window             | das Fenster           | Fensters         | Fenster           | opening
gate               | das Tor               | Tores            | Tore              | opening
drawer             | die Schublade         | Schublade        | Schubladen        | opening compound

# things
bottle             | die Flasche           | Flasche          | Flaschen          | thing holder stand lid fragile
glass/glasses      | das Glas              | Glases           | Gläser            | thing holder stand fragile
cup                | die Tasse             | Tasse            | Tassen            | thing holder stand fragile
plate              | der Teller            | Tellers          | Teller            | thing stand fragile
vase               | die Vase              | Vase             | Vasen             | thing holder stand gift fragile
lamp               | die Lampe             | Lampe            | Lampen            | thing device stand gift
candle             | die Kerze             | Kerze            | Kerzen            | thing stand gift
knife/knives       | das Messer            | Messers          | Messer            | thing tool lie
fork               | die Gabel             | Gabel            | Gabeln            | thing lie
spoon              | der Löffel            | Löffels          | Löffel            | thing lie
key                | der Schlüssel         | Schlüssels       | Schlüssel         | thing lie
ring               | der Ring              | Rings            | Ringe             | thing lie gift
coin               | die Münze             | Münze            | Münzen            | thing lie
passport           | der Reisepass         | Reisepasses      | Reisepässe        | thing lie compound
ticket             | die Fahrkarte         | Fahrkarte        | Fahrkarten        | thing lie compound
pencil             | der Bleistift         | Bleistifts       | Bleistifte        | thing tool lie compound
hammer             | der Hammer            | Hammers          | Hämmer            | thing tool lie
blanket            | die Decke             | Decke            | Decken            | thing lie
umbrella           | der Regenschirm       | Regenschirms     | Regenschirme      | thing lie compound
ball               | der Ball              | Balles           | Bälle             | thing lie gift
box                | die Kiste             | Kiste            | Kisten            | thing holder stand lid
basket             | der Korb              | Korbes           | Körbe             | thing holder stand
suitcase           | der Koffer            | Koffers          | Koffer            | thing holder stand lid
bag                | die Tasche            | Tasche           | Taschen           | thing holder stand lid
present            | das Geschenk          | Geschenks        | Geschenke         | thing gift lie
flower             | die Blume             | Blume            | Blumen            | thing gift plant
rose               | die Rose              | Rose             | Rosen             | thing gift plant
tree               | der Baum              | Baumes           | Bäume             | plant
camera             | die Kamera            | Kamera           | Kameras           | thing device lie gift
clock              | die Uhr               | Uhr              | Uhren             | thing device stand
radio              | das Radio             | Radios           | Radios            | thing device switch stand
computer           | der Computer          | Computers        | Computer          | thing device switch stand
television         | der Fernseher         | Fernsehers       | Fernseher         | device switch stand compound
washing machine    | die Waschmaschine     | Waschmaschine    | Waschmaschinen    | device switch stand compound
refrigerator       | der Kühlschrank       | Kühlschranks     | Kühlschränke      | device stand compound
heating            | die Heizung           | Heizung          | -                 | device switch mass
light              | das Licht             | Lichtes          | Lichter           | switch
guitar             | die Gitarre           | Gitarre          | Gitarren          | thing instrument lie gift
violin             | die Geige             | Geige            | Geigen            | thing instrument lie gift
piano              | das Klavier           | Klaviers         | Klaviere          | instrument stand
money              | das Geld              | Geldes           | -                 | mass
bill               | die Rechnung          | Rechnung         | Rechnungen        | bill

# clothes
coat               | der Mantel            | Mantels          | Mäntel            | clothes seen
jacket             | die Jacke             | Jacke            | Jacken            | clothes seen
dress              | das Kleid             | Kleides          | Kleider           | clothes gift
shirt              | das Hemd              | Hemdes           | Hemden            | clothes
skirt              | der Rock              | Rocks            | Röcke             | clothes
hat                | der Hut               | Hutes            | Hüte              | clothes seen
cap                | die Mütze             | Mütze            | Mützen            | clothes gift seen
scarf/scarves      | der Schal             | Schals           | Schals            | clothes gift seen
tie                | die Krawatte          | Krawatte         | Krawatten         | clothes gift seen
sweater            | der Pullover          | Pullovers        | Pullover          | clothes gift seen
glove              | der Handschuh         | Handschuhs       | Handschuhe        | clothes compound
shoe               | der Schuh             | Schuhs           | Schuhe            | clothes
boot               | der Stiefel           | Stiefels         | Stiefel           | clothes

# places (their prepositions are in PLACES)
house              | das Haus              | Hauses           | Häuser            | building own
flat               | die Wohnung           | Wohnung          | Wohnungen         | building room own
church             | die Kirche            | Kirche           | Kirchen           | building sight
school             | die Schule            | Schule           | Schulen           | building
university         | die Universität       | Universität      | Universitäten     | building
library            | die Bibliothek        | Bibliothek       | Bibliotheken      | building
museum             | das Museum            | Museums          | Museen            | building sight
theatre            | das Theater           | Theaters         | Theater           | building
cinema             | das Kino              | Kinos            | Kinos             | building
hospital           | das Krankenhaus       | Krankenhauses    | Krankenhäuser     | building compound
hotel              | das Hotel             | Hotels           | Hotels            | building
restaurant         | das Restaurant        | Restaurants      | Restaurants       | building
café               | das Café              | Cafés            | Cafés             | building
bakery             | die Bäckerei          | Bäckerei         | Bäckereien        | building
supermarket        | der Supermarkt        | Supermarkts      | Supermärkte       | building compound
factory            | die Fabrik            | Fabrik           | Fabriken          | building
town hall          | das Rathaus           | Rathauses        | Rathäuser         | building compound
castle             | das Schloss           | Schlosses        | Schlösser         | building sight
tower              | der Turm              | Turmes           | Türme             | building tall sight
bridge             | die Brücke            | Brücke           | Brücken           | street long
station            | der Bahnhof           | Bahnhofs         | Bahnhöfe          | building compound
airport            | der Flughafen         | Flughafens       | Flughäfen         | building compound
office             | das Büro              | Büros            | Büros             | room
kitchen            | die Küche             | Küche            | Küchen            | room
living room        | das Wohnzimmer        | Wohnzimmers      | Wohnzimmer        | room compound
bedroom            | das Schlafzimmer      | Schlafzimmers    | Schlafzimmer      | room compound
bathroom           | das Badezimmer        | Badezimmers      | Badezimmer        | room compound
cellar             | der Keller            | Kellers          | Keller            | room
garden             | der Garten            | Gartens          | Gärten            | outdoors own
park               | der Park              | Parks            | Parks             | outdoors
forest             | der Wald              | Waldes           | Wälder            | outdoors nature
market             | der Markt             | Marktes          | Märkte            | outdoors
zoo                | der Zoo               | Zoos             | Zoos              | outdoors
beach              | der Strand            | Strandes         | Strände           | outdoors nature long
lake               | der See               | Sees             | Seen              | nature deep
river              | der Fluss             | Flusses          | Flüsse            | nature deep long
mountain           | der Berg              | Berges           | Berge             | nature tall
street             | die Straße            | Straße           | Straßen           | street long
village            | das Dorf              | Dorfes           | Dörfer            | town
town               | die Stadt             | Stadt            | Städte            | town
island             | die Insel             | Insel            | Inseln            | nature
wall               | die Wand              | Wand             | Wände             | surroundings
roof               | das Dach              | Daches           | Dächer            | part
country            | das Land              | Landes           | Länder            | region

# events and abstract things
concert            | das Konzert           | Konzerts         | Konzerte          | event show
party              | die Feier             | Feier            | Feiern            | event
wedding            | die Hochzeit          | Hochzeit         | Hochzeiten        | event
meeting            | die Besprechung       | Besprechung      | Besprechungen     | event duty
lecture            | die Vorlesung         | Vorlesung        | Vorlesungen       | event duty show
exam               | die Prüfung           | Prüfung          | Prüfungen         | event duty test danger
conference         | die Konferenz         | Konferenz        | Konferenzen       | event duty
exhibition         | die Ausstellung       | Ausstellung      | Ausstellungen     | event show
course             | der Kurs              | Kurses           | Kurse             | event duty
trip               | der Ausflug           | Ausflugs         | Ausflüge          | event
game               | das Spiel             | Spiels           | Spiele            | event show game
birthday party     | die Geburtstagsfeier  | Geburtstagsfeier | Geburtstagsfeiern | event compound
question           | die Frage             | Frage            | Fragen            | question thought
answer             | die Antwort           | Antwort          | Antworten         | thought
problem            | das Problem           | Problems         | Probleme          | problem thought
task               | die Aufgabe           | Aufgabe          | Aufgaben          | problem thought
rule               | die Regel             | Regel            | Regeln            | thought
idea               | die Idee              | Idee             | Ideen             | thought
plan               | der Plan              | Plans            | Pläne             | thought
word               | das Wort              | Wortes           | Wörter            | wording
sentence           | der Satz              | Satzes           | Sätze             | wording
mistake            | der Fehler            | Fehlers          | Fehler            | flaw
secret             | das Geheimnis         | Geheimnisses     | Geheimnisse       | hidden
decision           | die Entscheidung      | Entscheidung     | Entscheidungen    | choice
price              | der Preis             | Preises          | Preise            | part
colour             | die Farbe             | Farbe            | Farben            | part
beginning          | der Anfang            | Anfangs          | Anfänge           | part
end                | das Ende              | Endes            | Enden             | part
title              | der Titel             | Titels           | Titel             | part
name               | der Name              | Namens           | Namen             | part weak
noise              | der Lärm              | Lärms            | -                 | mass
rain               | der Regen             | Regens           | -                 | climate mass
snow               | der Schnee            | Schnees          | -                 | climate mass
weather            | das Wetter            | Wetters          | -                 | climate mass
storm              | der Sturm             | Sturms           | Stürme            | climate danger
work               | die Arbeit            | Arbeit           | -                 | mass
"""

# noun | English where, German where (with dative) | English whither, German whither (zu: dative; else accusative)
PLACES = """
house        | in in | into in
flat         | in in | into in
church       | in in | to in
school       | at in | to in
university   | at an | to zu
library      | in in | to in
museum       | in in | to in
theatre      | in in | to in
cinema       | in in | to in
hospital     | in in | to in
hotel        | in in | to zu
restaurant   | in in | to in
café         | in in | to in
bakery       | in in | to in
supermarket  | in in | to in
factory      | in in | to in
town hall    | in in | to zu
castle       | in in | to zu
station      | at an | to zu
airport      | at an | to zu
office       | in in | to in
kitchen      | in in | into in
living room  | in in | into in
bedroom      | in in | into in
bathroom     | in in | into in
cellar       | in in | into in
garden       | in in | into in
park         | in in | to in
forest       | in in | into in
market       | at auf | to auf
zoo          | in in | to in
beach        | on an | to an
lake         | at an | to an
river        | by an | to an
village      | in in | to in
town         | in in | to in
island       | on auf | to auf
"""
