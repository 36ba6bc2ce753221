"""French words of time."""

from __future__ import annotations

from typing import Final

from agent_memory.times.reading.lexicon import Lexicon, table

FRENCH: Final = Lexicon(
    table(
        MONTH=(
            "1=janvier,janv;2=février,fevrier,févr;3=mars;4=avril,avr;"
            "5=mai;6=juin;7=juillet,juil;8=août,aout;9=septembre;"
            "10=octobre,oct;11=novembre,nov;12=décembre,decembre,déc"
        ),
        SURE_MONTH=(
            "1=janvier;2=février,fevrier;3=mars;4=avril;5=mai;6=juin;"
            "7=juillet;8=août,aout;9=septembre;10=octobre;11=novembre;"
            "12=décembre,decembre"
        ),
        WEEKDAY=("0=lundi,lun;1=mardi;2=mercredi,mer;3=jeudi,jeu;4=vendredi,ven;5=samedi,sam;6=dimanche,dim"),
        SURE_WEEKDAY="0=lundi;1=mardi;2=mercredi;3=jeudi;4=vendredi;5=samedi;6=dimanche",
        UNIT=(
            "day=jour,jours,journée;week=semaine,semaines;month=mois;"
            "quarter=trimestre,trimestres;year=an,ans,année,années,annee,"
            "annees;decade=décennie,décennies;century=siècle,siècles;"
            "weekend=weekend"
        ),
        TIME_UNIT="3600=heure,heures;60=minute,minutes;1=seconde,secondes",
        SEASON="3=printemps;6=été;9=automne;12=hiver",
        REL=(
            "0=ce,cet,cette,ces;1=prochain,prochaine,prochains,"
            "prochaines;-1=dernier,dernière,derniers,dernières,derniere"
        ),
        REL_BEHIND=(
            "1=prochain,prochaine,prochains,prochaines,suivant,suivante;"
            "-1=dernier,dernière,derniers,dernières,derniere,passé,"
            "passée,précédent,précédente"
        ),
        RELATIVE_DAY=("0=aujourd'hui,aujourd\u2019hui;1=demain,lendemain;-1=hier;-2=avant-hier;2=après-demain"),
        NUM=("1=un,une;2=deux;3=trois;4=quatre;5=cinq;6=six;7=sept;8=huit;9=neuf;10=dix;11=onze;12=douze"),
        DAY=(
            "1=premier;2=deux;3=trois;4=quatre;5=cinq;6=six;7=sept;"
            "8=huit;9=neuf;10=dix;11=onze;12=douze;13=treize;14=quatorze;"
            "15=quinze;16=seize;20=vingt;30=trente"
        ),
        ORDINAL="1=premier,première;2=deuxième;3=troisième;4=quatrième",
        PART="9=matin,matinée;12=midi;15=après-midi;19=soir,soirée;21=nuit",
        IL="il",
        Y="y",
        A="a",
        LATER="tard,après",
        FROM="de,du,depuis",
        IN="dans,en",
        ON="le",
        AT="à,vers",
        OF="de,du,d",
        THE="le,la,les,l",
        AND="et",
        OR="ou",
        BETWEEN="entre",
        TO="à,au,a,jusqu'à,jusqu'au",
        SINCE="depuis,dès",
        AFTER="après",
        BEFORE="avant",
        UNTIL="jusqu'à,jusqu'au,jusqu'en,jusque",
        END="fin",
        BEGINNING="début",
        EARLY="début",
        MID="mi",
        MIDDLE="milieu",
        YEAR_WORD="année,an",
        WEEK_WORD="semaine",
        DAY_WORD="jour",
        MONTH_WORD="mois",
        QUARTER_WORD="trimestre",
        CENTURY_WORD="siècle",
        WEEKEND="weekend=weekend",
        PREPOSITION="en,de,depuis,avant,après,entre,et,à,début,fin,mi",
        DATE_LEAD="le,du,au,depuis",
        DAY_LEAD="le,du,au,depuis",
        BEFORE_YEAR=("en,de,depuis,avant,après,entre,et,à,fin,début,été,hiver,printemps,automne,année,jusqu'en"),
        AHEAD="vais,va,sera,serai,reviendrai,demain,retournerai,rencontrons",
        PAST="était,hier,été,avait",
    ),
    phrases={
        "christmas": ("noël",),
        "new year's eve": ("saint-sylvestre",),
        "easter": ("pâques",),
        "easter monday": ("lundi de pâques",),
        "pentecost": ("pentecôte",),
        "bastille": ("quatorze juillet",),
        "all saints": ("toussaint",),
    },
)
