"""Spanish words of time."""

from __future__ import annotations

from typing import Final

from agent_memory.times.reading.lexicon import Lexicon, table

SPANISH: Final = Lexicon(
    table(
        MONTH=(
            "1=enero,ene;2=febrero,feb;3=marzo,mar;4=abril,abr;5=mayo,"
            "may;6=junio,jun;7=julio,jul;8=agosto,ago;9=septiembre,"
            "setiembre,sep,sept;10=octubre,oct;11=noviembre,nov;"
            "12=diciembre,dic"
        ),
        SURE_MONTH=(
            "1=enero;2=febrero;3=marzo;4=abril;5=mayo;6=junio;7=julio;"
            "8=agosto;9=septiembre,setiembre;10=octubre;11=noviembre;"
            "12=diciembre"
        ),
        WEEKDAY=("0=lunes,lun;1=martes;2=miércoles,miercoles;3=jueves,jue;4=viernes,vie;5=sábado,sabado;6=domingo,dom"),
        SURE_WEEKDAY=("0=lunes;1=martes;2=miércoles,miercoles;3=jueves;4=viernes;5=sábado,sabado;6=domingo"),
        UNIT=(
            "day=día,dia,días,dias;week=semana,semanas;month=mes,meses;"
            "quarter=trimestre,trimestres;year=año,años;decade=década,"
            "décadas;century=siglo,siglos"
        ),
        TIME_UNIT="3600=hora,horas;60=minuto,minutos;1=segundo,segundos",
        SEASON="3=primavera;6=verano;9=otoño;12=invierno",
        REL=(
            "0=este,esta,estos,estas;1=próximo,próxima,próximos,próximas,"
            "proximo,proxima;-1=último,última,últimos,últimas,ultimo,"
            "ultima,ultimos,pasado,pasada,pasados"
        ),
        REL_BEHIND=("1=próximo,próxima,proximo,proxima,siguiente,entrante;-1=pasado,pasada,anterior"),
        RELATIVE_DAY="0=hoy;1=mañana;-1=ayer;-2=anteayer",
        NUM=("1=un,una,uno;2=dos;3=tres;4=cuatro;5=cinco;6=seis;7=siete;8=ocho;9=nueve;10=diez;11=once;12=doce"),
        DAY=(
            "1=primero,uno;2=dos;3=tres;4=cuatro;5=cinco;6=seis;7=siete;"
            "8=ocho;9=nueve;10=diez;11=once;12=doce;13=trece;14=catorce;"
            "15=quince;16=dieciséis;17=diecisiete;18=dieciocho;"
            "19=diecinueve;20=veinte;21=veintiuno;22=veintidós;"
            "23=veintitrés;24=veinticuatro;25=veinticinco;26=veintiséis;"
            "27=veintisiete;28=veintiocho;29=veintinueve;30=treinta"
        ),
        ORDINAL="1=primer,primera,primero;2=segundo,segunda;3=tercer,tercera;4=cuarto,cuarta",
        PART="9=mañana;12=mediodía;15=tarde;21=noche",
        AGO_BEFORE="hace",
        AGO="atrás",
        LATER="después,despues",
        FROM="de,desde",
        IN="en",
        ON="el",
        AT="a",
        OF="de,del",
        THE="el,la,los,las",
        AND="y",
        OR="o",
        BETWEEN="entre",
        TO="a,al,hasta",
        SINCE="desde",
        AFTER="después,tras",
        BEFORE="antes",
        UNTIL="hasta",
        END="fin,final,finales,fines",
        BEGINNING="principio,principios,comienzo,inicio",
        MIDDLE="mediados",
        YEAR_WORD="año",
        WEEK_WORD="semana",
        DAY_WORD="día",
        MONTH_WORD="mes",
        QUARTER_WORD="trimestre",
        CENTURY_WORD="siglo",
        PREPOSITION="en,de,desde,hasta,antes,entre,y,a",
        DATE_LEAD="el,del,al,desde,hasta",
        DAY_LEAD="el,del,al,desde,hasta",
        BEFORE_YEAR="en,de,del,desde,hasta,entre,y,a,año,antes",
        AHEAD="voy,va,vamos,será,hasta,volveré,iré,reunión,reserva,estaré",
        PAST="fue,era,ayer,hace,estuvo,encontré,tenía",
    ),
    phrases={
        "christmas": ("navidad",),
        "christmas eve": ("nochebuena",),
        "new year's eve": ("nochevieja",),
        "new year": ("año nuevo",),
        "easter": ("domingo de pascua",),
        "good friday": ("viernes santo",),
    },
)
