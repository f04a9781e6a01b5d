"""Files and variables that make programs run something. Pure data."""

from collections.abc import Mapping

from toolreeve.core.evaluators.names import words

CODE_FILES: Mapping[str, tuple[str, ...]] = {
    "python": ("*.py", "*.pyc", "*.pth", "*.so"),
    "perl": ("*.pm", "*.pl"),
    "ruby": ("*.rb",),
    "node": ("*.js", "*.mjs", "*.cjs", "package.json"),
    "bun": ("*.js", "*.ts", "package.json"),
    "deno": ("*.js", "*.ts", "deno.json"),
    "php": ("*.php", "*.inc", ".user.ini"),
    "lua": ("*.lua",),
    "java": ("*.class", "*.jar"),
    **dict.fromkeys(["bash", "sh", "dash", "ksh", "zsh"], ("*.sh", "*.bash", ".*rc", ".*profile", ".bash_*")),
    **dict.fromkeys(
        ["make", "gmake", "cmake", "ninja"],
        ("[Mm]akefile", "GNUmakefile", "*.mk", "*.ninja", "CMakeLists.txt", "*.cmake"),
    ),
    **dict.fromkeys(["npm", "npx", "yarn", "pnpm"], ("package.json", "*.js", "*.ts", ".npmrc")),
    **dict.fromkeys(["pip", "uv", "tox", "nox", "pytest"], ("*.py", "*.toml", "*.cfg", "*.ini")),
    **dict.fromkeys(["docker", "podman", "docker-compose"], ("Dockerfile*", "Containerfile", "*.yml", "*.yaml")),
    **dict.fromkeys(["go", "cargo", "rustc", "gradle", "mvn", "ant", "sbt", "just", "task", "rake", "invoke"], ("*",)),
    **dict.fromkeys(
        ["bazel", "meson", "scons", "mix", "dotnet", "swift", "ts-node", "tsx", "ansible-playbook"], ("*",)
    ),
    **dict.fromkeys(
        ["terraform", "packer", "vagrant", "snakemake", "nextflow", "pre-commit", "act", "crontab", "run-parts"], ("*",)
    ),
    "git": (
        "config",
        ".gitconfig",
        ".gitattributes",
        ".gitmodules",
        "*-commit",
        "post-*",
        "pre-*",
        "*-checkout",
        "*-msg",
    ),
    "psql": (".psqlrc",),
    "sqlite3": (".sqliterc",),
    "curl": (".curlrc",),
    "wget": (".wgetrc",),
}
"""Files that a program runs or obeys without being given their names."""

OBEYS_FOLDER = frozenset(CODE_FILES) - words("bash sh dash ksh zsh perl git psql sqlite3 curl wget")
"""Programs that take code from the folder they are started in. Git's own files are guarded by the sandbox."""

COPIERS = words(
    """
    cp install link ln mv rsync scp
    """
)

COMPILERS = words(
    """
    as c++ cc clang clang++ g++ gcc go javac ld rustc
    """
)

WRITERS = COPIERS | COMPILERS | words("tee dd sponge curl wget xxd openssl patch split iconv sort base64 uudecode gzip")
"""Programs that write to a file named in their arguments."""

VARIABLES = words(
    """
    PATH IFS ENV HOME BASH_* LD_* DYLD_* PS0 PS1 PS2 PS3 PS4 PROMPT_COMMAND SHELLOPTS BASHOPTS *PAGER *EDITOR
    VISUAL BROWSER GIT_* PERL* PYTHON* NODE_* npm_config_* NPM_CONFIG_* RUBY* GEM_* BUNDLE_* LUA_* PHPRC
    PHP_INI_SCAN_DIR R_* JULIA_* JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS *_OPTS CLASSPATH LESS LESSOPEN
    LESSCLOSE LESSKEY MANOPT MANPATH MORE TAR_OPTIONS TAPE ZIPOPT UNZIP XZ_OPT XZ_DEFAULTS GZIP MAKE MAKEFLAGS
    GNUMAKEFLAGS MAKEFILES MFLAGS CC CXX CPP LD *_RSH *_ASKPASS GLOBIGNORE CDPATH GCONV_PATH LOCPATH NLSPATH
    PSQLRC PGSERVICEFILE PGSYSCONFDIR SHELL FCEDIT EXECIGNORE CURL_HOME WGETRC SYSTEM_WGETRC INPUTRC
    SQLITE_HISTORY MYSQL_* KUBECONFIG AWS_CONFIG_FILE XDG_CONFIG_* XDG_DATA_* VIMINIT EXINIT GVIMINIT VIM
    VIMRUNTIME OPENSSL_CONF OPENSSL_MODULES OPENSSL_ENGINES ANSIBLE_* TF_CLI_* DOCKER_CONFIG RSYNC_* SSH_*
    GCC_EXEC_PREFIX COMPILER_PATH LIBRARY_PATH RUSTC* CARGO_* GOFLAGS CMAKE_* AWKPATH AWKLIBPATH AWK_*
    TCLLIBPATH TERMINFO* RIPGREP_CONFIG_PATH BAT_CONFIG_PATH JQ_* MALLOC_* GROFF_* TEXINPUTS MAGICK_*
    POSIXLY_CORRECT PWD histchars HISTFILE FIGNORE FUNCNEST OLDPWD
    """
)
"""Patterns of variables that make the shell or a common program run something."""
