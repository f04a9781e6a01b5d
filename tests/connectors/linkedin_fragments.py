"""LinkedIn's guest fragments, with all that stands around the data on the pages of 2026.

The structure (elements, classes, comments, spacing) follows pages as the site serves them; the contents are made up.
"""

_ICON = """<icon aria-hidden="true" class="job-posting-benefits__icon lazy-loaded"
 data-svg-class-name="job-posting-benefits__icon-svg"><svg class="lazy-loaded" focusable="false" height="24"
 viewbox="0 0 24 24" xmlns="http://www.w3.org/2000/svg"><path d="M12 20C7.6 20 4 16.4 4 12Z"></path></svg></icon>"""


def card(
    job: int,
    title: str = "Engineer",
    salary: str = "",
    date: str = "2026-01-02",
    *,
    root: str = "div",
    new: bool = False,
) -> str:
    """`root` is `a` for a card that is itself the link; `new` for a job of the last day."""
    link = f"https://de.linkedin.com/jobs/view/engineer-at-corp-{job}?position=1&amp;pageNum=0&amp;refId=x%3D%3D"
    own_link = f' href="{link}"' if root == "a" else ""
    full_link = (
        f"""<a class="base-card__full-link absolute top-0 right-0 bottom-0 left-0 p-0 z-[2] outline-offset-[4px]"
 href="{link}">
<span class="sr-only">


        {title}


          </span>
</a>"""
        if root == "div"
        else f'<span class="screen-reader-text">{title}</span>'
    )
    company = (
        """<a class="hidden-nested-link" href="https://de.linkedin.com/company/corp?trk=public_jobs_jserp-result">
            Corp &amp; Co
          </a>"""
        if root == "div"
        else "Corp &amp; Co"
    )
    paid = f'<span class="job-search-card__salary-info">\n            {salary}\n          </span>' if salary else ""
    return f"""<li>
<{root} class="base-card relative w-full hover:no-underline focus:no-underline base-card--link base-search-card
 base-search-card--link job-search-card" data-column="1" data-entity-urn="urn:li:jobPosting:{job}"
 data-reference-id="WvFVwEAGhf4nN0r2XzIrbg==" data-row="2"{own_link}>
{full_link}
<div class="search-entity-media">
<img class="artdeco-entity-image" data-delayed-url="https://media.licdn.com/logo?e=1&amp;v=beta">
</div>
<div class="base-search-card__info">
<h3 class="base-search-card__title">

        {title}

          </h3>
<h4 class="base-search-card__subtitle">
{company}
</h4>
<!---->
<div class="base-search-card__metadata">
<span class="job-search-card__location">
            Berlin
          </span>
{paid}
<div class="job-posting-benefits text-sm">{_ICON}
<span class="job-posting-benefits__text">
          Be an early applicant
<!----> </span>
</div>
<time class="job-search-card__listdate{"--new" if new else ""}" datetime="{date}">




      1 day ago

          </time>
<!---->
</div>
</div>
<!---->
</{root}>
</li>
"""


def detail(kind: str = "Full-time", level: str = "Mid-Senior level", text: str = "We work remote.") -> str:
    return f"""<section class="top-card-layout container-lined overflow-hidden babybear:rounded-[0px]">
<div class="top-card-layout__card relative p-2 papabear:p-details-container-padding">
<a href="https://de.linkedin.com/company/corp?trk=public_jobs_topcard_logo" target="_self"><img></a>
<div class="top-card-layout__entity-info-container flex flex-wrap papabear:flex-nowrap">
<div class="top-card-layout__entity-info flex-grow flex-shrink-0 basis-0 babybear:flex-none babybear:w-full">
<a class="topcard__link" href="https://de.linkedin.com/jobs/view/engineer-at-corp-1?trk=public_jobs_topcard-title">
<h2 class="top-card-layout__title font-sans text-lg papabear:text-xl font-bold leading-open text-color-text mb-0
 topcard__title">Engineer</h2>
</a>
<!---->
<h4 class="top-card-layout__second-subline font-sans text-sm leading-open text-color-text-low-emphasis mt-0.5">
<div class="topcard__flavor-row">
<span class="topcard__flavor">
<a class="topcard__org-name-link topcard__flavor--black-link" href="https://de.linkedin.com/company/corp">
                Corp
              </a>
</span>
<span class="topcard__flavor topcard__flavor--bullet">
              Berlin
            </span>
</div>
<div class="topcard__flavor-row">
<span class="posted-time-ago__text topcard__flavor--metadata">


      2 weeks ago

        </span>
<span class="num-applicants__caption topcard__flavor--metadata topcard__flavor--bullet">
          74 applicants
        </span>
</div>
<a class="face-pile flex !no-underline see-who-was-hired" href="https://www.linkedin.com/login">
<p class="face-pile__text font-sans text-sm">See who Corp has hired for this role</p>
<!----> </a>
</h4>
<div class="top-card-layout__cta-container flex flex-wrap mt-0.5 papabear:mt-0 ml-[-12px]">
<button class="sign-up-modal__outlet top-card-layout__cta btn-md btn-primary">Apply</button>
<div class="contextual-sign-in-modal"><div class="modal modal--contextual-sign-in"><section role="dialog">
<h2 class="contextual-sign-in-modal__context-screen-title">Join or sign in to find your next job</h2>
<code id="i18n_username_error_empty" style="display: none"><!--"Please enter an email address"--></code>
<form action="https://www.linkedin.com/uas/login-submit" method="post"><input name="session_key" type="text">
<button type="submit">Sign in</button></form></section></div></div>
</div></div></div></div>
</section>
<div class="decorated-job-posting__details">
<section class="core-section-container my-3 description">
<div class="core-section-container__content break-words">
<div class="description__text description__text--rich">
<section class="show-more-less-html" data-max-lines="5">
<div class="show-more-less-html__markup show-more-less-html__markup--clamp-after-5 relative overflow-hidden">
          <p>{text}</p><ul><li>Python</li></ul><p><a href="https://corp.example/jobs">Apply</a></p>
        </div>
<button aria-expanded="false" class="show-more-less-html__button show-more-less-button">Show more</button>
</section>
</div>
<ul class="description__job-criteria-list">
<li class="description__job-criteria-item">
<h3 class="description__job-criteria-subheader">
              Seniority level
            </h3>
<span class="description__job-criteria-text description__job-criteria-text--criteria">
            {level}
          </span>
</li>
<li class="description__job-criteria-item">
<h3 class="description__job-criteria-subheader">
              Employment type
            </h3>
<span class="description__job-criteria-text description__job-criteria-text--criteria">
            {kind}
          </span>
</li>
</ul>
</div>
</section>
</div>"""
