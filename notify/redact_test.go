package notify_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mulligan-dev/mulligan/notify"
)

// secretCases are texts with what has to be left of them. The secrets are made up.
var secretCases = []struct{ name, in, want string }{
	{"env assignment", "export DB_PASSWORD=hunter2 && run", "export DB_PASSWORD=[redacted] && run"},
	{"keyword argument", `connect(host="db", password="hunter2")`, `connect(host="db", password="[redacted]")`},
	{"query", "GET /cb?access_token=abc&state=7", "GET /cb?access_token=[redacted]&state=7"},
	{"yaml", "password: hunter2\nuser: ann", "password: [redacted]\nuser: ann"},
	{"json", `{"api_key": "a b c", "n": 1}`, `{"api_key": "[redacted]", "n": 1}`},
	{"json in a string", `"{\"client_secret\": \"abc\", \"n\": 1}"`, `"{\"client_secret\": \"[redacted]\", \"n\": 1}"`},
	{"python dict", `{'token': 'abc'}`, `{'token': '[redacted]'}`},
	{"subscript", `os.environ["PGPASSWORD"] = "x y"`, `os.environ["PGPASSWORD"] = "[redacted]"`},
	{"bytes literal", `secret=b"abc"`, `secret=b"[redacted]"`},
	{"go walrus", `apiKey := "abc"`, `apiKey := "[redacted]"`},
	{"ruby", `password => "abc"`, `password => "[redacted]"`},
	{"camel case", "dbPassword=abc", "dbPassword=[redacted]"},
	{"upper key", "STRIPE_KEY=abcd1234abcd", "STRIPE_KEY=[redacted]"},
	{"option", "tool --password hunter2 --verbose", "tool --password [redacted] --verbose"},
	{"option with equals", "tool --api-key=abc", "tool --api-key=[redacted]"},
	{"bearer header", "Authorization: Bearer abc.def", "Authorization: [redacted]"},
	{"header in curl", `curl -H "Authorization: Basic dXNlcjpwYXNz" https://h/`, `curl -H "Authorization: [redacted]" https://h/`},
	{"header in a dict", `{'Authorization': 'xyz'}`, `{'Authorization': '[redacted]'}`},
	{"digest header", "authorization: Digest username=\"a\"\nnext", "authorization: [redacted]\"a\"\nnext"},
	{"bare bearer", "sent Bearer abcdef123456", "sent Bearer [redacted]"},
	{"cookie", "Cookie: sid=abc; theme=dark\nAccept: */*", "Cookie: [redacted]\nAccept: */*"},
	{"url user and password", "postgres://ann:hunter2@db:5432/x", "postgres://[redacted]@db:5432/x"},
	{"url password with a slash", "postgres://ann:hun/ter@db/x", "postgres://[redacted]@db/x"},
	{"url password with an at", "https://ann:p@ss@host/x", "https://[redacted]@host/x"},
	{"url token as user", "https://x0123456789abcdefgh@host:8080/x", "https://[redacted]@host:8080/x"},
	{"aws id", "key AKIAIOSFODNN7EXAMPLE used", "key [redacted] used"},
	{"aws secret", "AWS_SECRET_ACCESS_KEY=wJalr/K7MDENG+bPx", "AWS_SECRET_ACCESS_KEY=[redacted]"},
	{"github", "ghp_0123456789abcdefghijABCDEFGHIJ012345 x", "[redacted] x"},
	{"github fine", "github_pat_11ABCDEFG0123456789_abcdef", "[redacted]"},
	{"openai", "sk-abcdefghijklmnopqrstuvwx123456", "[redacted]"},
	{"openai project", "sk-proj-abc_DEF-0123456789abcdefghij", "[redacted]"},
	{"anthropic", "sk-ant-api03-0123456789abcdefghijkl-AA", "[redacted]"},
	{"slack", "xoxb-1234567890-abcdef", "[redacted]"},
	{"slack hook", "https://hooks.slack.com/services/T0/B0/xyz ok", "https://hooks.slack.com/services/[redacted] ok"},
	{"discord hook", "to https://discord.com/api/webhooks/1234/abcXYZ ok", "to https://discord.com/api/webhooks/[redacted] ok"},
	{"signed url", "https://a.example/c?sv=1&sig=k4Bz%2F0123456789abcdef&se=2", "https://a.example/c?sv=1&sig=[redacted]&se=2"},
	{"signed url of a bucket", "https://b/o?X-Amz-Signature=0123456789abcdef0123 ok", "https://b/o?X-Amz-Signature=[redacted] ok"},
	{"key in a query", "GET /maps?key=abcd0123efgh4567ijkl", "GET /maps?key=[redacted]"},
	{"secret key base", "SECRET_KEY_BASE=abc", "SECRET_KEY_BASE=[redacted]"},
	{"google", "AIzaSyA0123456789abcdefghijklmnopqrstuvw", "[redacted]"},
	{"jwt", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-DEF_123 x", "[redacted] x"},
	{"key block", "a\n-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIE+/=\nAAAA\n-----END RSA PRIVATE KEY-----\nb", "a\n[redacted]\nb"},
	{"key block in json", `{"k":"-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n"}`, `{"k":"[redacted]\n"}`},
	{"key block without end", "-----BEGIN PRIVATE KEY-----\nMIIE\nAAAA\n  File \"x\"", "[redacted]  File \"x\""},
	{"key block without beginning", "x: y\nMIIE\nAAAA\n-----END PRIVATE KEY-----\nb", "x: y\n[redacted]\nb"},
}

func TestRedactHides(t *testing.T) {
	t.Parallel()
	for _, c := range secretCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := notify.Redact(c.in)
			if got != c.want {
				t.Errorf("Redact(%q)\n got %q\nwant %q", c.in, got, c.want)
			}
			if again := notify.Redact(got); again != got {
				t.Errorf("not idempotent: %q became %q", got, again)
			}
		})
	}
}

// TestRedactKeeps holds the other promise: what a person needs to understand a failure is left as it is.
func TestRedactKeeps(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"Traceback (most recent call last):\n  File \"/srv/acme/token.py\", line 12, in get_token\n    token = self.tokens.next()\nKeyError: 'password'",
		"ImportError: cannot import name 'refresh_token' from 'acme.auth' (/srv/acme/auth.py)",
		"SyntaxError: Unexpected token: }",
		"SyntaxError: invalid token: foo",
		"TypeError: login() got an unexpected keyword argument 'password'",
		"def login(user: str, password: str = None):",
		"    password = os.environ[\"PGPASSWORD\"]",
		"    token = get_token(user)",
		"PWD=/home/ann/work",
		"max_tokens=4096 token_count: 12",
		"password=None token=null secret=${SECRET} password=$DB_PASSWORD",
		"commit 4f1e2d3c4b5a69788796a5b4c3d2e1f001122334",
		"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		"git clone ssh://git@github.com/acme/acme.git and git@github.com:acme/acme.git",
		"http://localhost:8080/a@v1.2 http://[::1]:8080/a@b https://pkg.dev/x@v1.2.3",
		"/srv/acme/lib/password.py:12: error: token.c:120: error",
		"docker run -v /run/secrets/db_password:/x -v /etc/secret:/y",
		"sk-learn-pipeline-v2-experiment and task-force-12345678901234567890",
		"usage: tool --password PASSWORD [--token TOKEN] use --token to pass one",
		"the bearer token is missing; authorization: denied",
		"panic: runtime error: index out of range [5] with length 3",
		"GET /items?key=name&sig=none&signature=True sort(key=lambda0123456789abcdef) sig=SIGTERM0123456789abc",
		"-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
		"0190b5c2-7d1e-7c3a-9f00-0123456789ab",
		"std::token::Token secret::Foo a==b password==other",
	} {
		if got := notify.Redact(s); got != s {
			t.Errorf("took something out of an ordinary text:\n in %q\nout %q", s, got)
		}
	}
}

func FuzzRedact(f *testing.F) {
	for _, c := range secretCases {
		f.Add(c.in)
		f.Add(c.in + " " + c.in)
	}
	f.Add("--pAsswd :0") // found by fuzzing: hidden by the colon first, by the option then
	f.Add("-----BEGIN -----BEGIN PRIVATE KEY----- PRIVATE KEY-----")
	f.Add("token=token=token= --password --password x://x://a:b@c:d@e")
	f.Fuzz(func(t *testing.T, s string) {
		once := notify.Redact(s)
		if twice := notify.Redact(once); twice != once {
			t.Errorf("not idempotent:\n  in %q\nonce %q\nthen %q", s, once, twice)
		}
		// Nothing is invented: with the placeholders taken out, what is left is a subsequence of the text.
		rest := s
		for _, kept := range strings.Split(once, notify.Placeholder) {
			i := strings.Index(rest, kept)
			if i < 0 {
				t.Fatalf("%q is not in what is left of %q", kept, s)
			}
			rest = rest[i+len(kept):]
		}
	})
}

// TestRedactTwice puts fragments together that each mean something, which fuzzing by bytes seldom does.
func TestRedactTwice(t *testing.T) {
	t.Parallel()
	fragments := []string{
		"password", "token", "api_key", "Authorization", "Cookie", "--password", "--token", "DB_PASS", "Bearer ", "Basic ", "Digest ", ":", "=",
		":=", "=>", "://", "@", "/", "?", "&", ";", ",", " ", "  ", "\n", "\"", "'", "\\\"", "[", "]", "{", "}", "(", ")", "b\"", "hunter2", "None", "$VAR",
		"self.x", "f(", "abcdefgh1234", "ghp_0123456789abcdefghijABCDEF", "AKIAIOSFODNN7EXAMPLE", "eyJhbGciOiJIUzI1NiJ9", ".eyJzdWIiOiIxMjM0In0", "sk-",
		"sk-abcdefghijklmnopqrst12345", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "MIIE", "-", "_", ".", "http", "[redacted]", "8080",
		"xoxb-1234567890", "SG.", "hooks.slack.com/services/",
	}
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOfN(rapid.SampledFrom(fragments), 1, 12).Draw(t, "fragments"), "")
		once := notify.Redact(s)
		if twice := notify.Redact(once); twice != once {
			t.Fatalf("not idempotent:\n  in %q\nonce %q\nthen %q", s, once, twice)
		}
	})
}

// hostile are texts that make a careless scanner go back and forth.
func hostile(n int) map[string]string {
	rep := func(s string) string { return strings.Repeat(s, n/len(s)+1)[:n] }
	return map[string]string{
		"dashes": rep("sk-"), "urls": rep("://"), "begin": rep("-----BEGIN PRIVATE KEY-----"), "end": rep("-----END PRIVATE KEY-----"),
		"equals": rep("token="), "spaces": "token=" + rep(" "), "jwt": rep("eyJaaaaaaaaa-"), "sendgrid": rep("SG.a"),
		"quotes": rep(`password="`), "at": rep("://a:b/"), "escaped": rep(`password:\"`), "header": rep("Authorization: Bearer "),
		"options": rep("--password "), "xox": rep("xoxb-"), "cookie": rep("cookie: "), "blank": rep("password={"), "call": rep("password=abc("), "colons": rep("token:"), "subscript": rep("a['token']:"), "harmless": rep("password: none "), "armour": rep("A") + "-----END X-----",
	}
}

func BenchmarkRedact(b *testing.B) {
	tail := strings.Repeat("2026-01-02 12:00:00 INFO acme.worker: step 12 of 40 done in 1.2s, next is /srv/acme/job/17\n", 720)
	texts := hostile(64 << 10)
	texts["ordinary"] = tail
	for name, s := range texts {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				notify.Redact(s)
			}
		})
	}
}
