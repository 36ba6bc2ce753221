"""Names of software, services and firms that agents meet every day, and words that are never a name. Plain lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_memory.entities.mention import Kind

_PRODUCTS: Final = """
    Python Java JavaScript TypeScript Rust Golang Kotlin Scala Haskell Erlang Elixir Clojure PHP Perl MATLAB Fortran
    C++ C# F# Node.js Next.js Nuxt.js Vue.js Vue React Angular Svelte jQuery Django Flask FastAPI Rails Laravel
    Spring_Boot Express.js Docker Docker_Compose Kubernetes Helm Podman Terraform Ansible Pulumi Vagrant Jenkins
    GitHub_Actions GitLab_CI CircleCI Travis_CI ArgoCD Argo_CD GitHub GitLab Bitbucket Git Postgres PostgreSQL MySQL
    MariaDB SQLite MongoDB Redis Memcached Cassandra DynamoDB BigQuery Snowflake Redshift ClickHouse DuckDB
    Elasticsearch OpenSearch Kafka RabbitMQ Celery Airflow Spark Hadoop Flink Databricks Nginx Apache_Kafka
    Apache_Spark Traefik HAProxy Envoy Istio Consul Vault Prometheus Grafana Loki Jaeger OpenTelemetry Datadog
    Sentry PagerDuty Opsgenie Splunk Kibana Logstash Slack Jira Confluence Notion Figma Trello Asana Zoom Teams
    Gmail Outlook Excel PowerPoint Photoshop Salesforce HubSpot Zendesk Shopify Stripe PayPal Twilio SendGrid
    Mailchimp Auth0 Okta Keycloak Linux Ubuntu Debian Fedora CentOS Windows macOS Android iOS Chrome Firefox Safari
    VSCode VS_Code Vim Neovim Emacs PyCharm IntelliJ Xcode Jupyter Colab PyTorch TensorFlow Keras JAX LangChain
    LlamaIndex ChatGPT GPT-4 GPT-4o GPT-5 Claude Gemini Llama Mistral Copilot Whisper Qdrant Pinecone Weaviate
    Milvus ChromaDB Supabase Firebase Vercel Netlify Heroku Cloudflare AWS GCP Azure S3 EC2 Lambda CloudFront SQS
    SNS Cloud_Run Raspberry_Pi Arduino Home_Assistant iPhone iPad MacBook Kindle GraphQL gRPC WebSocket Playwright
    Selenium Cypress Jest Webpack Vite Babel ESLint Prettier Tailwind Bootstrap Storybook Homebrew Tableau Power_BI
    Looker Metabase SharePoint OneDrive Dropbox Google_Drive Google_Docs Google_Sheets Google_Calendar Calendly
    Spotify Netflix YouTube Instagram TikTok WhatsApp Telegram Discord Twitter LinkedIn Reddit Wikipedia Steam
    Minecraft
"""
_PACKAGES: Final = """
    numpy pandas scipy scikit-learn matplotlib seaborn sqlalchemy pydantic pytest mypy ruff pylint flake8 isort
    httpx aiohttp urllib3 boto3 uvicorn gunicorn starlette alembic psycopg2 asyncpg celery structlog loguru typer
    pyyaml lxml beautifulsoup4 openpyxl networkx onnxruntime tokenizers transformers hypothesis pytest-asyncio tox
    poetry setuptools hatchling virtualenv cryptography paramiko jinja2 werkzeug lodash axios eslint prettier
    webpack zod redux tokio serde clap reqwest rayon mongoose sequelize prisma vitest tailwindcss faiss langgraph
    litellm instructor spacy nltk gensim xgboost lightgbm polars pyarrow dask streamlit gradio plotly moto respx
    freezegun tenacity orjson msgpack
"""
_FIRMS: Final = """
    Google Microsoft Amazon Apple Meta Facebook Netflix OpenAI Anthropic Nvidia NVIDIA Intel AMD IBM Oracle SAP
    Siemens Bosch BMW Volkswagen Daimler Toyota Honda Sony Samsung Huawei Tencent Alibaba Uber Lyft Airbnb Tesla
    SpaceX Boeing Airbus Walmart Ikea IKEA DHL UPS FedEx Lufthansa NASA Mozilla Adobe Cisco Dell Lenovo Accenture
    Deloitte McKinsey Vodafone Telekom Deutsche_Bahn Deutsche_Bank Commerzbank Allianz Goldman_Sachs JPMorgan Visa
    Mastercard UNESCO NATO
"""
_SMALL_TOO: Final = """
    postgres postgresql mysql mariadb sqlite mongodb redis memcached kubernetes docker nginx terraform kafka
    rabbitmq grafana prometheus elasticsearch opensearch github gitlab bitbucket python javascript typescript django
    fastapi jenkins ansible ubuntu debian macos pytorch tensorflow langchain qdrant datadog dynamodb bigquery
    clickhouse duckdb opentelemetry graphql webpack vscode neovim chatgpt openai anthropic cloudflare heroku vercel
    netlify keycloak haproxy traefik
"""
_NO_NAMES: Final = """
    i monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays
    saturdays sundays january february march april may june july august september october november december jan feb
    mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri sat sun today tomorrow yesterday
    tonight yes yeah no ok okay thanks thank hey hi hello wow great sure sorry well oh haha lol omg please also but
    so and or not never always god let lets good nice cool awesome absolutely definitely glad congrats
    congratulations sounds bye later anyway actually by am pm est pst cet utc gmt api apis url urls json yaml xml
    html css http https sql cli gui ui ux pr prs ci cd id ids uuid todo fixme note warning error debug info true
    false none null get post put delete patch head options cpu gpu ram ssd pdf csv ok faq eta asap fyi imo btw tbd
    mvp qa ceo cto cfo vp hr user users customer client assistant agent team q1 q2 q3 q4 mr mrs ms dr prof sir madam
    merry christmas xmas easter thanksgiving halloween new happy log_level debug dns tls ssl ssh vpn tcp udp ip ipv4
    ipv6 jwt oauth sso mfa 2fa otp rest crud orm sdk ide llm llms rag ai ml utf ascii regex env stdin stdout stderr
    tdd bdd sla slo kpi okr poc rfc adr mock mocks stub python-only the a an english german french spanish chinese
    japanese italian russian portuguese dutch turkish arabic korean
"""
NO_NAMES: Final = frozenset(_NO_NAMES.split())
"""Small. What is written large, or looks like a name, and names nobody: days, greetings, abbreviations of the trade."""


def _listed(words: str) -> list[str]:
    return [word.replace("_", " ") for word in words.split()]


KNOWN_NAMES: Final[Mapping[str, Kind]] = {
    **dict.fromkeys(_listed(_PRODUCTS), "product"),
    **dict.fromkeys(_listed(_FIRMS), "organisation"),
    **dict.fromkeys(_listed(_SMALL_TOO), "product"),
    **dict.fromkeys(_listed(_PACKAGES), "package"),
}
"""The kind by name, as it is written; a name counts only in this writing."""
_EVERYDAY_WORDS: Final = """
    Teams Zoom Notion Vault Consul Spark Lambda Envoy Express Steam Meta Visa Vue React Helm Git
"""
EVERYDAY: Final = frozenset(_EVERYDAY_WORDS.split())
"""Of these, those that are also a word at the beginning of a sentence."""
