from toolreeve.config.secrets import secret_values


def test_values_of_variables_whose_names_tell_are_secret() -> None:
    environ = {
        "GITHUB_TOKEN": "ghp_123456",
        "OPENAI_API_KEY": "sk-123456",
        "DB_PASSWORD": "hunter22",
        "PATH": "/usr/bin:/bin",
        "MAX_TOKENS": "1000000",
        "SSH_KEY": "/home/me/.ssh/id",
        "SHORT_KEY": "abc",
    }

    assert secret_values((), environ) == ("ghp_123456", "sk-123456", "hunter22")


def test_named_variables_and_patterns_are_secret_too() -> None:
    environ = {"INTERNAL_URL": "https://x.example", "INTERNAL_HOST": "db.internal", "LANG": "en_GB.UTF-8"}

    assert secret_values(("INTERNAL_*",), environ) == ("https://x.example", "db.internal")
