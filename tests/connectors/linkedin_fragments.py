"""LinkedIn's guest fragments, in their present shape."""


def card(job: int, title: str = "Engineer", salary: str = "", date: str = "2026-01-02") -> str:
    paid = f'<span class="job-search-card__salary-info">{salary}</span>' if salary else ""
    return f"""<li><div class="base-card relative w-full base-search-card base-search-card--link job-search-card"
 data-entity-urn="urn:li:jobPosting:{job}"><a class="base-card__full-link absolute"
 href="https://de.linkedin.com/jobs/view/engineer-{job}?refId=x"><span class="sr-only">{title}</span></a>
<div class="base-search-card__info"><h3 class="base-search-card__title"> {title} </h3>
<h4 class="base-search-card__subtitle"><a class="hidden-nested-link" href="/company/c">Corp &amp; Co</a></h4>
<div class="base-search-card__metadata"><span class="job-search-card__location">Berlin</span>{paid}
<time class="job-search-card__listdate" datetime="{date}">1 day ago</time></div></div></div></li>"""


def detail(kind: str = "Full-time", level: str = "Mid-Senior level", text: str = "We work remote.") -> str:
    return f"""<section class="top-card-layout"><h2 class="top-card-layout__title topcard__title">Engineer</h2>
<a class="topcard__org-name-link" href="/c">Corp</a><span class="topcard__flavor topcard__flavor--bullet">Berlin</span>
</section><div class="description__text"><section><div class="show-more-less-html__markup"><p>{text}</p>
<ul><li>Python</li></ul><p><a href="https://corp.example/jobs">Apply</a></p></div></section></div>
<ul><li><h3 class="description__job-criteria-subheader">Seniority level</h3>
<span class="description__job-criteria-text">{level}</span></li>
<li><h3 class="description__job-criteria-subheader">Employment type</h3>
<span class="description__job-criteria-text">{kind}</span></li></ul>"""
