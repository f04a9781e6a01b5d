"""Secrets in the shapes that scanners look for, with bodies made up at run time: none of them ever was one.

In a template, `{A36}` stands for 36 random characters of the alphabet `A`; those bodies are the secret.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

from toolreeve.core.secrets.redactor import Redactor

DIGITS, LOWER = "0123456789", "abcdefghijklmnopqrstuvwxyz"
UPPER = LOWER.upper()
ALPHABETS = {
    "A": LOWER + UPPER + DIGITS,
    "W": LOWER + UPPER + DIGITS + "_-",
    "B": LOWER + UPPER + DIGITS + "+/",
    "H": DIGITS + "abcdef",
    "L": LOWER + DIGITS,
    "U": UPPER + DIGITS,
    "D": DIGITS,
    "P": LOWER + UPPER + DIGITS + "!#%*+.?^_~",
}
UUID = "{H8}-{H4}-{H4}-{H4}-{H12}"

TOKENS = f"""
openai sk-{{A48}} | openai-project sk-proj-{{W120}} | openai-service sk-svcacct-{{W80}}
anthropic sk-ant-api03-{{W93}}AA | anthropic-admin sk-ant-admin01-{{W93}}AA | openrouter sk-or-v1-{{H64}}
deepseek sk-{{H32}} | langfuse sk-lf-{UUID} | elevenlabs sk_{{H48}} | groq gsk_{{A52}} | xai xai-{{A80}}
replicate r8_{{A37}} | huggingface hf_{{A34}} | huggingface-org api_org_{{A34}} | perplexity pplx-{{A48}}
together tgp_v1_{{W43}} | jina jina_{{A60}} | nvidia nvapi-{{W64}} | cerebras csk-{{L48}} | tavily tvly-{{W32}}
firecrawl fc-{{H32}} | langsmith lsv2_pt_{{H32}}_{{H10}} | e2b e2b_{{H40}} | langsmith-service lsv2_sk_{{H32}}_{{H10}}
pinecone pcsk_{{W64}} | runpod rpa_{{A46}} | statsig statsig-{{A43}} | github ghp_{{A36}} | github-oauth gho_{{A36}}
github-user ghu_{{A36}} | github-server ghs_{{A36}} | github-refresh ghr_{{A76}}
github-fine github_pat_{{A22}}_{{A59}} | gitlab glpat-{{W20}} | gitlab-deploy gldt-{{W20}}
gitlab-runner glrt-{{W20}} | gitlab-ci glcbt-{{A5}}_{{W20}} | gitlab-trigger glptt-{{H40}} | gitlab-feed glft-{{W20}}
gitlab-mail glimt-{{W25}} | gitlab-agent glagent-{{W50}} | gitlab-oauth gloas-{{H64}} | gitlab-scim glsoat-{{W20}}
gitlab-registration GR1348941{{W20}} | bitbucket ATBB{{A32}} | atlassian ATATT3{{W186}} | trello ATTA{{H64}}
asana 1/{{D16}}:{{H32}} | clickup pk_{{D8}}_{{U32}} | slack-bot xoxb-{{D12}}-{{D13}}-{{A24}}
slack-user xoxp-{{D12}}-{{D12}}-{{D13}}-{{H32}} | slack-app xapp-1-{{U11}}-{{D13}}-{{H64}}
slack-hook https://hooks.slack.com/services/T{{U10}}/B{{U10}}/{{A24}} | slack-config xoxe.xoxp-1-{{W160}}
discord-hook https://discord.com/api/webhooks/{{D18}}/{{W68}} | discord-bot M{{A23}}.{{W6}}.{{W27}}
telegram {{D10}}:AA{{W33}} | telegram-url bot{{D9}}:AA{{W33}}
aws AKIA{{U16}} | aws-session ASIA{{U16}} | aws-service ABIA{{U16}}
aws-mws amzn.mws.{UUID} | google AIza{{W35}} | google-oauth ya29.{{W60}} | google-client GOCSPX-{{W28}}
google-refresh 1//0{{W60}} | alibaba LTAI{{A20}} | tencent AKID{{A32}} | azure-client {{A3}}8Q~{{A34}}
azure-devops {{A76}}AZDO{{A4}} | azure-identifiable {{A52}}JQQJ99{{A26}} | digitalocean dop_v1_{{H64}}
digitalocean-oauth doo_v1_{{H64}} | digitalocean-refresh dor_v1_{{H64}} | vault hvs.{{W90}} | vault-batch hvb.{{W138}}
vault-recovery hvr.{{W90}} | terraform {{A14}}.atlasv1.{{W64}} | pulumi pul-{{H40}} | fly fo1_{{W43}}
doppler dp.pt.{{A43}} | doppler-service dp.st.{{A43}} | tailscale tskey-auth-{{A12}}-{{A24}}
cloudflare-ca v1.0-{{H24}}-{{H146}} | heroku HRKU-{UUID} | netlify nfp_{{A36}} | render rnd_{{A28}}
supabase sbp_{{H40}} | supabase-secret sb_secret_{{W31}} | planetscale pscale_tkn_{{W43}}
planetscale-password pscale_pw_{{W43}} | databricks dapi{{H32}} | neon napi_{{A60}} | mongodb-atlas mdb_sa_sk_{{W40}}
aiven AVNS_{{W20}} | npm npm_{{A36}} | pypi pypi-AgEIcHlwaS5vcmc{{W80}} | rubygems rubygems_{{H48}}
clojars CLOJARS_{{L60}} | docker dckr_pat_{{W27}} | docker-org dckr_oat_{{W32}} | artifactory AKCp{{A69}}
artifactory-reference cmVmd{{A59}} | circleci CCIPAT_{{A22}}_{{H40}} | buildkite bkua_{{H40}} | sonar squ_{{H40}}
sonar-project sqp_{{H40}} | sentry sntrys_{{W80}} | sentry-user sntryu_{{H64}} | grafana glsa_{{A32}}_{{H8}}
grafana-cloud glc_{{A60}} | newrelic NRAK-{{U27}} | dynatrace dt0c01.{{U24}}.{{U64}} | honeycomb hcaik_{{L58}}
postman PMAK-{{H24}}-{{H34}} | launchdarkly sdk-{UUID} | stripe sk_live_{{A24}} | stripe-test sk_test_{{A24}}
stripe-restricted rk_live_{{A24}} | stripe-hook whsec_{{A32}} | square sq0atp-{{W22}} | square-secret sq0csp-{{W43}}
shopify shpat_{{H32}} | shopify-custom shpca_{{H32}} | shopify-private shppa_{{H32}} | shopify-shared shpss_{{H32}}
plaid access-production-{UUID} | paypal access_token$production${{L16}}${{H32}} | flutterwave FLWSECK-{{H32}}-X
easypost EZAK{{A54}} | shippo shippo_live_{{H40}} | duffel duffel_live_{{W43}} | sendgrid SG.{{W22}}.{{W43}}
mailgun key-{{H32}} | mailchimp {{H32}}-us12 | brevo xkeysib-{{H64}}-{{A16}} | twilio SK{{H32}}
facebook EAAC{{A120}} | twitter AAAAAAAAAAAAAAAAAAAAAA{{A80}} | firebase AAAA{{W7}}:APA91b{{W134}}
hubspot pat-na1-{UUID} | intercom dG9rO{{A60}} | linear lin_api_{{A40}} | linear-oauth lin_oauth_{{H64}}
notion ntn_{{A46}} | notion-old secret_{{A43}} | airtable pat{{A14}}.{{H64}} | figma figd_{{W40}}
contentful CFPAT-{{W43}} | typeform tfp_{{W59}} | posthog phx_{{W43}} | sourcegraph sgp_{{H40}} | prefect pnu_{{A36}}
readme rdme_{{L70}} | zoho 1000.{{H32}}.{{H32}} | deepl {UUID}:fx | openshift sha256~{{W43}}
1password ops_eyJ{{A250}} | 1password-key A3-{{U6}}-{{U11}}-{{U5}}-{{U5}}-{{U5}} | yandex y0_{{W58}}
mapbox sk.eyJ{{A80}}.{{W22}} | adobe p8e-{{L32}} | age AGE-SECRET-KEY-1{{U58}} | jwt eyJ{{A33}}.eyJ{{A60}}.{{W43}}
bitcoin xprv{{A107}}
"""

LINES = """
PGPASSWORD={P16} psql -h db
MYSQL_PWD={P16} mysqldump app
export DB_PASSWORD={P16}
export API_KEY="{A32}"
AWS_SECRET_ACCESS_KEY={B40}
aws_secret_access_key = {B40}
aws configure set aws_secret_access_key {B40}
SECRET_KEY_BASE={H128}
DJANGO_SECRET_KEY='{P50}'
env GITHUB_TOKEN={H40} make
set VAULT_TOKEN=s.{A24}
password: {P14}
  password: {A14}
passwd = {P14}
db.password={P14}
spring.datasource.password={P14}
secret: {A24}
client_secret: "{A40}"
  api_key: {A32}
"password": "{P14}",
"apiKey": "{A32}"
{{"auths": {{"r.example": {{"auth": "{A40}"}}}}}}
{{"access_token":"{W80}","expires_in":3600}}
{{\\"password\\": \\"{A14}\\"}}
token = "{A40}"
password = '{P14}'
<password>{A14}</password>
//packages.example/:_authToken={A36}
_auth={A40}
machine h.example login ada password {P14}
login ada\\n  password {P14}
db.example:5432:app:ada:{A14}
localhost:5432:*:ada:{A14}
postgres://ada:{A14}@db:5432/app
postgresql+asyncpg://ada:{A14}@db/app
mysql://root:{A14}@127.0.0.1/app
mongodb+srv://ada:{A14}@cluster.example/app
redis://:{A14}@cache:6379/0
amqp://guest:{A14}@mq:5672/v
https://ada:{A14}@git.example/r.git
https://{A40}@git.example/r.git
ftp://ada:{A14}@h/f
jdbc:postgresql://db/app?user=ada&password={A14}
jdbc:sqlserver://db;user=sa;password={A14};
jdbc:oracle:thin:ada/{A14}@db:1521:x
Server=db;Database=app;Uid=sa;Pwd={A14};
Driver={{ODBC Driver 18}};Server=db;UID=sa;PWD={A14}
DefaultEndpointsProtocol=https;AccountName=x;AccountKey={B86}==;EndpointSuffix=core
Endpoint=sb://x.example/;SharedAccessKeyName=n;SharedAccessKey={B43}=
https://x.blob.example/c?sv=2024&sig={A43}%3D
https://b.example/o?X-Amz-Signature={H64}
https://f.example/api/h?code={W54}==
https://api.example/v1?access_token={A40}&page=2
https://api.example/v1?api_key={A32}
Authorization: Basic {A24}==
Authorization: Bearer {W40}
authorization: token {H40}
Authorization: Digest username="ada", realm="x", nonce="{H32}", response="{H32}"
Authorization: AWS4-HMAC-SHA256 Credential=x/20260101/eu/s3/aws4_request, Signature={H64}
Authorization: ApiKey {A40}
Authorization: SSWS 00{W40}
Proxy-Authorization: Basic {A24}
X-Api-Key: {A32}
X-Auth-Token: {H32}
X-Vault-Token: s.{A24}
PRIVATE-TOKEN: {W20}
Ocp-Apim-Subscription-Key: {H32}
DD-API-KEY: {H32}
api-key: {H32}
Cookie: session={A32}; theme=dark
Set-Cookie: sid={A32}; HttpOnly
JSESSIONID={U32}
PHPSESSID={L26}; path=/
"Authorization": "Bearer {W40}"
curl -u ada:{P14} https://x.example
curl -s --user ada:{A14} https://x.example
curl -H 'Authorization: Bearer {W40}' https://x.example
curl -H "X-Api-Key: {A32}" https://x.example
wget --password={A14} https://x.example
wget --password {A14} https://x.example
mysql -u root -p{A14} app
mysqldump --password={A14} app
mariadb -h db -p{A14}
sshpass -p {P14} ssh h
sshpass -p'{A14}' scp a h:
docker login -u ada -p {A14} r.example
helm registry login r.example -u ada -p {A14}
az login -u ada -p {A14}
mongosh -u ada -p {A14} app
redis-cli -h cache -a {A14} ping
ldapsearch -x -D cn=ada -w {A14} -b dc=x
sqlcmd -S db -U sa -P {A14}
unzip -P {A14} a.zip
7z x -p{A14} a.7z
smbclient //h/s -U ada%{A14}
gpg --batch --passphrase {A14} -d f
htpasswd -b f ada {A14}
openssl rsa -passin pass:{A14} -in k
deploy --token {A32} --force
deploy --api-key={A32}
deploy --client-secret "{A32}"
kubeadm join h:6443 --token {L6}.{L16}
http -a ada:{A14} x.example
ALTER USER ada IDENTIFIED BY '{A14}'
CREATE ROLE ada LOGIN PASSWORD '{A14}'
"private_key_id": "x", "private_key": "-----BEGIN PRIVATE KEY-----\\n{B64}\\n{B64}\\n-----END PRIVATE KEY-----\\n"
STRIPE_KEY={A24}
OPENAI_KEY: {A24}
PASS={A14} run
  pass: {A14}
<add key="Password" value="{A14}" />
- name: DB_PASSWORD\\n  value: {A14}
requirepass {A14}
bindpw: {A14}
npm config set //r.example/:_authToken {A36}
line\\nGITHUB={A4}\\nghp_{A36}
"""

BLOCKS = [
    ("pem-" + kind, f"-----BEGIN {kind}-----\n{{B64}}\n{{B64}}\n-----END {kind}-----")
    for kind in (
        "PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "DSA PRIVATE KEY", "OPENSSH PRIVATE KEY",
        "ENCRYPTED PRIVATE KEY", "PGP PRIVATE KEY BLOCK",
    )
] + [
    ("ssh2", "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n{B64}\n---- END SSH2 ENCRYPTED PRIVATE KEY ----"),
    ("putty", "PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 1\n{B64}\nPrivate-MAC: 1"),
    ("cut pem", "-----BEGIN RSA PRIVATE KEY-----\n{B64}\n{B6"),
]  # fmt: skip

_BODY = re.compile(r"\{([A-Z])(\d+)\}")
SHORTEST = 6


@dataclass(frozen=True, slots=True)
class Sample:
    name: str
    text: str
    secrets: tuple[str, ...]

    def is_found(self, redactor: Redactor) -> bool:
        shown = redactor.text(self.text)
        return not any(secret in shown for secret in self.secrets)


def samples(dice: random.Random) -> Iterator[Sample]:
    for each in TOKENS.replace("\n", "|").split("|"):
        if each.strip():
            name, template = each.split()
            yield _sample(name, f"the value is {template} and so on", dice)
    for line in LINES.strip("\n").splitlines():
        yield _sample(line, line.replace("\\n  ", "\n  ").replace("{{", "{").replace("}}", "}"), dice)
    for name, template in BLOCKS:
        yield _sample(name, template, dice)


def _sample(name: str, template: str, dice: random.Random) -> Sample:
    bodies: list[str] = []

    def body(found: re.Match[str]) -> str:
        alphabet = ALPHABETS[found[1]]
        length = int(found[2])
        made = "".join(dice.choice(alphabet) for _ in range(length))
        made = dice.choice(LOWER) + made[1:-1] + dice.choice(DIGITS) if found[1] in "APW" else made
        bodies.append(made)
        return made

    text = _BODY.sub(body, template)
    return Sample(name, text, tuple(each for each in bodies if len(each) >= SHORTEST))
