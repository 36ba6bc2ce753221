"""German words of time."""

from __future__ import annotations

from typing import Final

from agent_memory.times.reading.lexicon import Lexicon, table

GERMAN: Final = Lexicon(
    table(
        MONTH=(
            "1=januar,jan,jänner;2=februar,feb;3=märz,mär,mrz;4=april,"
            "apr;5=mai;6=juni,jun;7=juli,jul;8=august,aug;9=september,"
            "sept,sep;10=oktober,okt;11=november,nov;12=dezember,dez"
        ),
        SURE_MONTH=(
            "1=januar;2=februar;3=märz;4=april;5=mai;6=juni;7=juli;"
            "8=august;9=september;10=oktober;11=november;12=dezember"
        ),
        WEEKDAY=(
            "0=montag,mo;1=dienstag,di;2=mittwoch,mi;3=donnerstag,do;4=freitag,fr;5=samstag,sonnabend,sa;6=sonntag,so"
        ),
        SURE_WEEKDAY=("0=montag;1=dienstag;2=mittwoch;3=donnerstag;4=freitag;5=samstag,sonnabend;6=sonntag"),
        UNIT=(
            "day=tag,tage,tagen,tages,tg;week=woche,wochen;month=monat,"
            "monate,monaten,monats;quarter=quartal,quartale,quartalen,"
            "quartals;year=jahr,jahre,jahren,jahres;decade=jahrzehnt,"
            "jahrzehnte,jahrzehnten;century=jahrhundert,jahrhunderts;"
            "weekend=wochenende,wochenendes"
        ),
        TIME_UNIT="3600=stunde,stunden;60=minute,minuten;1=sekunde,sekunden",
        SEASON="3=frühling,frühjahr;6=sommer;9=herbst;12=winter",
        REL=(
            "0=dieser,diese,dieses,diesen,diesem;1=nächster,nächste,"
            "nächstes,nächsten,nächstem,kommende,kommenden,kommendes,"
            "kommender;-1=letzter,letzte,letztes,letzten,letztem,"
            "vergangene,vergangenen,vergangenes,vorige,vorigen,voriges"
        ),
        RELATIVE_DAY="0=heute;1=morgen;-1=gestern;2=übermorgen;-2=vorgestern",
        NUM=(
            "1=ein,eine,einen,einem,einer,eins;2=zwei;3=drei;4=vier;"
            "5=fünf;6=sechs;7=sieben;8=acht;9=neun;10=zehn;11=elf;"
            "12=zwölf"
        ),
        DAY=(
            "1=ersten,erster,erste;2=zweiten,zweiter;3=dritten,dritter;"
            "4=vierten;5=fünften;6=sechsten;7=siebten;8=achten;9=neunten;"
            "10=zehnten;11=elften;12=zwölften;13=dreizehnten;"
            "14=vierzehnten;15=fünfzehnten;16=sechzehnten;17=siebzehnten;"
            "18=achtzehnten;19=neunzehnten;20=zwanzigsten;"
            "21=einundzwanzigsten;22=zweiundzwanzigsten;"
            "23=dreiundzwanzigsten;24=vierundzwanzigsten;"
            "25=fünfundzwanzigsten;26=sechsundzwanzigsten;"
            "27=siebenundzwanzigsten;28=achtundzwanzigsten;"
            "29=neunundzwanzigsten;30=dreißigsten;31=einunddreißigsten"
        ),
        ORDINAL=("1=ersten,erster,erste;2=zweiten,zweiter,zweite;3=dritten,dritter,dritte;4=vierten,vierte"),
        PART="9=morgen,vormittag,früh;12=mittag;15=nachmittag;19=abend;21=nacht",
        AGO_BEFORE="vor",
        BEFORE="vor",
        LATER="später",
        FROM="von,vom",
        IN="in,im",
        ON="am,an,den",
        AT="um,gegen",
        OF="des,der,von",
        THE="der,die,das,dem,den,zum,des",
        AND="und",
        OR="oder",
        BETWEEN="zwischen",
        TO="bis",
        SINCE="seit,ab",
        AFTER="nach",
        UNTIL="bis",
        LATE="spät",
        EARLY="anfang,früh",
        MIDDLE="mitte",
        MID="mitte",
        END="ende",
        BEGINNING="beginn,anfang",
        YEAR_WORD="jahr,jahres,jahre",
        WEEK_WORD="woche",
        DAY_WORD="tag",
        MONTH_WORD="monats,monat",
        QUARTER_WORD="quartal",
        CENTURY_WORD="jahrhundert",
        WEEKEND="weekend=wochenende",
        CALENDAR_WEEK="kw,kalenderwoche",
        OCLOCK="uhr",
        ONWARD="an",
        PREPOSITION="in,im,seit,bis,vor,nach,ab,von,und,mitte,ende,anfang",
        DATE_LEAD="am,den,dem,vom,bis,seit,ab,zum,der",
        DAY_LEAD="am,den,dem,vom,bis,seit,ab,zum",
        BEFORE_YEAR=("in,im,seit,bis,vor,nach,ab,von,und,mitte,ende,anfang,sommer,winter,herbst,frühling,zwischen"),
        AHEAD="werde,wird,werden,wirst,will,wollen,plane,planen,bis,fällig,treffen",
        PAST="war,waren,hatte,hatten,wurde,wurden,ging,gestern,habe,hat",
    ),
    phrases={
        "christmas": ("weihnachten",),
        "christmas eve": ("heiligabend", "heiliger abend"),
        "new year's eve": ("silvester",),
        "new year": ("neujahr",),
        "easter": ("ostern", "ostersonntag"),
        "easter monday": ("ostermontag",),
        "good friday": ("karfreitag",),
        "pentecost": ("pfingsten",),
        "german unity": ("tag der deutschen einheit",),
    },
)
