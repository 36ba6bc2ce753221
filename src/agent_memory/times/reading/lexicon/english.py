"""English words of time."""

from __future__ import annotations

from typing import Final

from agent_memory.times.reading.lexicon import Lexicon, table

_ORDINALS: Final = "1=first;2=second;3=third;4=fourth;5=fifth;6=sixth;7=seventh;8=eighth;9=ninth"
_LATER_ORDINALS: Final = (
    "10=tenth;11=eleventh;12=twelfth;13=thirteenth;14=fourteenth;15=fifteenth;16=sixteenth;17=seventeenth"
    ";18=eighteenth;19=nineteenth;20=twentieth;30=thirtieth;31=thirty-first"
)
_UNITS: Final = "1=one;2=two;3=three;4=four;5=five;6=six;7=seven;8=eight;9=nine"
_TEENS: Final = (
    "10=ten;11=eleven;12=twelve;13=thirteen;14=fourteen;15=fifteen;16=sixteen;17=seventeen;18=eighteen;19=nineteen"
)
_TENS: Final = "20=twenty;30=thirty;40=forty;50=fifty;60=sixty;70=seventy;80=eighty;90=ninety"

_WORDS: Final = table(
    MONTH="""1=january,jan;2=february,feb;3=march,mar;4=april,apr;5=may;6=june,jun;7=july,jul;8=august,aug
9=september,sep,sept;10=october,oct;11=november,nov;12=december,dec""",
    SURE_MONTH="""1=january;2=february,feb;4=april,apr;6=june;7=july;8=august,aug
9=september,sept;10=october,oct;11=november,nov;12=december""",
    WEEKDAY="""0=monday,mon;1=tuesday,tue,tues;2=wednesday,wed,weds;3=thursday,thu,thur,thurs;4=friday,fri;5=saturday,sat
6=sunday,sun""",
    SURE_WEEKDAY="0=monday;1=tuesday;2=wednesday;3=thursday;4=friday;5=saturday;6=sunday",
    UNIT="""day=day,days;week=week,weeks;month=month,months;quarter=quarter,quarters;year=year,years,yr,yrs
decade=decade,decades;century=century,centuries;weekend=weekend,weekends;fortnight=fortnight,fortnights
business=weekday,workday,workdays""",
    TIME_UNIT="3600=hour,hours,hr,hrs;60=minute,minutes,min,mins;1=second,seconds,sec,secs",
    SEASON="3=spring;6=summer;9=autumn,fall;12=winter",
    QUARTER="1=q1;2=q2;3=q3;4=q4",
    HALF="1=h1;2=h2",
    REL="""0=this,current;1=next,following,coming,upcoming;-1=last,previous,past""",
    NEXT_ONE="1=upcoming,coming",
    THIS="0=this",
    LAST="-1=last",
    RELATIVE_DAY="0=today,tonight,tonite;1=tomorrow,tmr,tmrw,tomorow;-1=yesterday",
    NOW="0=now",
    RIGHT="right",
    NUM=f"{_UNITS};{_TEENS};{_TENS};100=hundred;1=a,an;3=few,several;2=couple",
    UNIT_WORD=f"{_UNITS};{_ORDINALS}",
    TENS=_TENS,
    TEEN="19=nineteen;18=eighteen;17=seventeen;20=twenty",
    TWO_DIGITS=f"{_TEENS};{_TENS}",
    THOUSAND="thousand",
    DAY=f"{_ORDINALS};{_LATER_ORDINALS};{_UNITS};{_TEENS};20=twenty;30=thirty",
    ORDINAL=f"{_ORDINALS};{_LATER_ORDINALS}",
    HOUR=f"{_UNITS};10=ten;11=eleven;12=twelve",
    PART="9=morning,mornings;12=noon;15=afternoon;19=evening;21=night;0=midnight;13=lunchtime;8=breakfast;18=dinner",
    AGO="ago,earlier,back",
    EARLIER="earlier",
    LATER="later",
    FROM="from",
    IN="in",
    ON="on",
    AT="at,around,about",
    OF="of",
    THE="the",
    A="a",
    AND="and",
    OR="or",
    BETWEEN="between",
    TO="to,till,until,through,thru",
    SINCE="since",
    AFTER="after,following",
    BEFORE="before",
    UNTIL="until,till",
    BY="by",
    FOR="for",
    OVER="over,during,throughout,for",
    START="starting,beginning,commencing,effective",
    THAN="than",
    NO="no,not",
    AS="as",
    LATE="late",
    EARLY="early",
    MID="mid",
    MIDDLE="middle",
    END="end",
    BEGINNING="beginning,start",
    END_OF="day=eod;week=eow;month=eom;year=eoy",
    CALENDAR="calendar",
    MONTH_WORD="month",
    QUARTER_WORD="quarter",
    HALF_WORD="half",
    CENTURY_WORD="century",
    FORTNIGHT="fortnight=fortnight",
    BUSINESS="business,working",
    BUSINESS_UNIT="business=days,day",
    HOUR_UNIT="3600=hour",
    REST="rest",
    MONTH_OR_YEAR_TO="month=mtd;year=ytd",
    DATE_WORD="date",
    FIRST="first",
    THAN_LATER="later",
    ONWARD="onward,onwards,on,forward,forwards",
    GREATER="later,after,greater,onward,onwards,newer,above",
    LESSER="earlier,before,older,prior",
    WITHIN="within",
    WEEKDAYS="0=mondays;1=tuesdays;2=wednesdays;3=thursdays;4=fridays;5=saturdays;6=sundays",
    DAY_LEAD="on,for,by,since,until,till,after,before,from,to",
    MY="my,our,your",
    ENDING="ending,ends,expires,expiring",
    THROUGH="through,thru",
    UP="up",
    PRIOR="prior",
    DAY_OR_NIGHT="night",
    WEEKEND="weekend=weekend",
    OCLOCK="o'clock,oclock",
    YEAR_WORD="year",
    WEEK_WORD="week",
    DAY_WORD="day",
    W="w",
    C="c,b",
    PREPOSITION="in,of,since,by,from,until,till,before,after,during,around,about,between,throughout,to,through,year,for,over,early,late,mid",
    AHEAD="will,let,let's,please,schedule,plan,plans,planned,going,should,shall,book,arrange,upcoming,tomorrow,i'll,we'll,until,by,due,deadline,available,meet,expires",
    PAST="was,were,did,went,had,since,ago,been,last,yesterday",
    DECADE="1920=twenties;1930=thirties;1940=forties;1950=fifties;1960=sixties;1970=seventies;1980=eighties;1990=nineties",
    EVERY="every,each",
    BEFORE_YEAR="in,the,on,of,since,by,from,until,till,before,after,during,around,about,between,throughout,to,through,for,early,late,mid,and,or,not,than,circa,spring,summer,autumn,fall,winter",
)
_CAPITALS: Final = table(
    CAPITAL_MONTH="3=March,MARCH,Mar;5=May,MAY;1=Jan;12=Dec;6=Jun;7=Jul",
    CAPITAL_WEEKDAY="0=Mon;1=Tue,Tues;2=Wed;3=Thu,Thur,Thurs;4=Fri;5=Sat;6=Sun",
)
ENGLISH: Final = Lexicon(
    _WORDS | {word: _WORDS[word.lower()] | tags for word, tags in _CAPITALS.items()},
    day_first=False,
    phrases={
        name: tuple(names.split(","))
        for name, names in {
            "new year": "new year's day,new years day,new year day",
            "new year's eve": "new year eve,new year's eve,new years eve",
            "martin luther king": "martin luther king day,mlk day",
            "groundhog": "groundhog day",
            "valentine": "valentine's day,valentines day,valentine day,st valentine's day",
            "women": "international women's day,women's day",
            "st patrick": "saint patrick,st patrick,st patrick's day,st. patrick's day,st patricks day",
            "april fools": "april fools' day,april fools day,april fool's day,april fools",
            "earth": "earth day",
            "easter": "easter,easter sunday",
            "easter monday": "easter monday",
            "good friday": "good friday",
            "pentecost": "pentecost,whit sunday",
            "may day": "may day,labour day,international workers' day,international workers day",
            "mother": "mother's day,mothers day",
            "father": "father's day,fathers day",
            "memorial": "memorial day",
            "juneteenth": "juneteenth",
            "independence": "independence day",
            "labor": "labor day",
            "columbus": "columbus day",
            "halloween": "halloween",
            "veterans": "veterans day,veteran's day",
            "thanksgiving": "thanksgiving,thanksgiving day",
            "black friday": "black friday",
            "cyber monday": "cyber monday",
            "christmas eve": "christmas eve,xmas eve",
            "christmas": "christmas,christmas day,xmas",
            "boxing": "boxing day",
        }.items()
    },
)
