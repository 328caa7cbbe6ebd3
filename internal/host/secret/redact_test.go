package secret_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/internal/processor"
)

const value = `p"a\ss<word>/17&x`

func TestAValueIsFoundInEveryFormThatProgramsWrite(t *testing.T) {
	r := secret.NewRedactor(secret.Secret{Name: "DB", Value: value})
	quoted, _ := json.Marshal(value)
	twice, _ := json.Marshal(string(quoted))
	for name, text := range map[string]string{
		"as it is":                               "password: " + value + ".",
		"in JSON":                                `{"password":` + string(quoted) + `}`,
		"in JSON in JSON":                        `{"output":` + string(twice) + `}`,
		"in an address":                          "https://example.com/?p=" + url.QueryEscape(value),
		"in a path":                              "https://example.com/" + url.PathEscape(value),
		"as other programs put it in an address": "p=p%22a%5css%3cword%3e%2f17%26x",
		"in an address whose slashes stay":       "p%22a%5Css%3Cword%3E/17%26x",
		"in JSON whose slashes are escaped":      `{"p":"p\"a\\ss<word>\/17&x"}`,
		"in such JSON in JSON":                   `{"out":"{\"p\":\"p\\\"a\\\\ss<word>\\/17&x\"}"}`,
		"in a page":                              "<td>p&#34;a\\ss&lt;word&gt;/17&amp;x</td>",
		"in hex":                                 hex.EncodeToString([]byte(value)),
		"in capital hex":                         strings.ToUpper(hex.EncodeToString([]byte(value))),
		"in base64":                              base64.StdEncoding.EncodeToString([]byte(value)),
		"in base64, later":                       base64.StdEncoding.EncodeToString([]byte("user:" + value + "\n")),
		"in base64, latest":                      base64.URLEncoding.EncodeToString([]byte("a user:" + value + "@")),
		"twice on a line":                        value + value,
		"at the very end":                        "x" + value,
		"after a false dawn":                     value[:5] + value,
	} {
		out, found := r.Redact([]byte(text))
		mark := "${secret:DB}"
		if strings.HasPrefix(name, "in base64") || strings.HasSuffix(name, "hex") {
			mark = "[redacted: an encoding of DB]"
		}
		if !found || !bytes.Contains(out, []byte(mark)) || bytes.Contains(out, []byte(value)) {
			t.Errorf("%s: %q became %q", name, text, out)
		}
		if got := r.RedactString(text); got != string(out) {
			t.Errorf("%s: as a string it became %q", name, got)
		}
	}
}

// An address to come back to is a part of another one, and what a program logs of
// that may have either in capitals.
func TestAValueIsFoundInAnAddressWithinAnAddress(t *testing.T) {
	const value = "p w/ä&x:1~2"
	r := secret.NewRedactor(secret.Secret{Name: "DB", Value: value})
	for name, once := range map[string]string{
		"a query": url.QueryEscape(value), "a path": url.PathEscape(value), "small digits": "p%20w%2f%c3%a4%26x%3a1~2", "encodeURI": "p%20w/%C3%A4&x:1~2",
	} {
		for name2, twice := range map[string]string{
			"a query": url.QueryEscape(once), "a path": url.PathEscape(once),
			"small digits": strings.NewReplacer("%2F", "%2f", "%3A", "%3a").Replace(url.QueryEscape(once)),
		} {
			if got := r.RedactString("?to=" + twice + "&z"); got != "?to=[redacted: an encoding of DB]&z" && once != twice {
				t.Errorf("%s in %s: %q became %q", name, name2, twice, got)
			}
		}
	}
}

func TestWhatHoldsNoSecretIsReturnedAsItIs(t *testing.T) {
	r := secret.NewRedactor(secret.Secret{Name: "DB", Value: value})
	text := []byte(strings.Repeat("p\"a password that is none, p\"a\\ss<wor ", 100))
	allocs := testing.AllocsPerRun(100, func() {
		if out, found := r.Redact(text); found || &out[0] != &text[0] {
			t.Error("a text without a secret was changed")
		}
		if out, found := r.RedactJSON(text); found || &out[0] != &text[0] {
			t.Error("a document without a secret was changed")
		}
	})
	if allocs != 0 {
		t.Errorf("looking costs %v allocations", allocs)
	}
}

// What dash, bash, Python, PHP and SQL make of quotes, and JSON without other
// characters than those of ASCII.
func TestAValueIsFoundInTheQuotesOfPrograms(t *testing.T) {
	const value = "pä's\"s$w\\r`d/\U0001F511&2"
	r := secret.NewRedactor(secret.Secret{Name: "DB", Value: value})
	for name, text := range map[string]string{
		"export -p of dash":    "export DB='pä'\"'\"'s\"s$w\\r`d/\U0001F511&2'",
		"set of bash":          "DB='pä'\\''s\"s$w\\r`d/\U0001F511&2'",
		"export -p of bash":    "declare -x DB=\"pä's\\\"s\\$w\\\\r\\`d/\U0001F511&2\"",
		"printf %q":            "pä\\'s\\\"s\\$w\\\\r\\`d/\U0001F511\\&2",
		"repr":                 "'pä\\'s\"s$w\\\\r`d/\U0001F511&2'",
		"SQL":                  "values ('pä''s\"s$w\\r`d/\U0001F511&2')",
		"JSON of Python":       `{"p": "p\u00e4's\"s$w\\r` + "`" + `d/\ud83d\udd11&2"}`,
		"JSON of PHP":          `{"p":"p\u00e4's\"s$w\\r` + "`" + `d\/\ud83d\udd11&2"}`,
		"JSON in capitals":     `{"p":"p\u00E4's\"s$w\\r` + "`" + `d/\uD83D\uDD11&2"}`,
		"such JSON in JSON":    `{"out":"{\"p\": \"p\\u00e4's\\\"s$w\\\\r` + "`" + `d/\\ud83d\\udd11&2\"}"}`,
		"html.escape":          "<td>pä&#x27;s&quot;s$w\\r`d/\U0001F511&amp;2</td>",
		"htmlspecialchars":     "<td>pä&#039;s&quot;s$w\\r`d/\U0001F511&amp;2</td>",
		"an XML attribute":     `<a p="pä's&quot;s$w\r` + "`" + `d/` + "\U0001F511" + `&amp;2"/>`,
		"encodeURIComponent":   "?p=p%C3%A4's%22s%24w%5Cr%60d%2F%F0%9F%94%91%262",
		"quotes within quotes": `{"out":"DB='pä'\\''s\"s$w\\r` + "`" + `d/` + "\U0001F511" + `&2'"}`,
	} {
		got := r.RedactString(text)
		if !strings.Contains(got, "${secret:DB}") || strings.Contains(got, "$w") {
			t.Errorf("%s: %s became %s", name, text, got)
		}
	}
}

// Programs break what they encode into lines: base64 at 76 characters, openssl
// at 64, xxd at 60; cat -n, grep -n and fs.read number these.
func TestAnEncodedValueIsFoundWhereverItIsBrokenIntoLines(t *testing.T) {
	const long = "sk-service-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-and-the-rest-of-it"
	r := secret.NewRedactor(secret.Secret{Name: "DB", Value: long})
	for name, encoded := range map[string]string{
		"base64": base64.StdEncoding.EncodeToString([]byte("user:" + long + "\n")), "hex": hex.EncodeToString([]byte(long)),
	} {
		whole := r.RedactString(encoded)
		if len(whole) > 60 {
			t.Fatalf("%s: unbroken it became %q", name, whole)
		}
		for _, end := range []string{"\n", "\r\n", "\n    ", `\n`, `\\r\\n`, "\n    12\t", "\n7:", `\n     3\t`, "\n\t", `\\n\\t`, "\n12:     3\t"} {
			for width := 4; width < len(encoded); width++ {
				broken := ""
				for rest := encoded; rest != ""; rest = rest[min(width, len(rest)):] {
					broken += rest[:min(width, len(rest))] + end
				}
				got := r.RedactString(broken)
				if !strings.Contains(got, "[redacted: an encoding of DB]") || len(strings.ReplaceAll(got, end, "")) > len(whole)+2 {
					t.Errorf("%s in lines of %d that end in %q became %q", name, width, end, got)
				}
			}
		}
	}
	inHex := hex.EncodeToString([]byte(long))
	if got := r.RedactString(inHex[:len(inHex)-2] + "\n" + inHex[len(inHex)-2:] + ": the rest"); got != "[redacted: an encoding of DB]: the rest" {
		t.Errorf("the digits at its end are taken for a number: %q", got)
	}
	for _, text := range []string{
		inHex[:20] + "\n\n" + strings.Repeat(" ", 100) + inHex[20:], inHex[:20] + "\n" + strings.Repeat("1", 300) + ":" + inHex[20:], "c2stc2Vydmlj\\",
	} {
		if got := r.RedactString(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

const (
	keyHeader = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmU"
	keyLine   = "QyNTUxOQAAACDHashedThings/Go+Here"
	key       = "-----BEGIN OPENSSH PRIVATE KEY-----\n" + keyHeader + "\n" + keyLine + "\nshort=\n-----END OPENSSH PRIVATE KEY-----"
)

func TestTheLinesOfAKeyAreFoundOneByOne(t *testing.T) {
	r := secret.NewRedactor(secret.Secret{Name: "DEPLOY", Value: key})
	if got := r.RedactString("it is " + key); got != "it is ${secret:DEPLOY}" {
		t.Errorf("whole it became %q", got)
	}
	for text, want := range map[string]string{
		"     3\t" + keyLine + "\n":           "     3\t[redacted: a line of DEPLOY]\n",
		"key: |\n  " + keyLine + "\n":         "key: |\n  [redacted: a line of DEPLOY]\n",
		strings.ReplaceAll(key, "\n", "\r\n"): strings.ReplaceAll(strings.ReplaceAll(key, "\n", "\r\n"), keyLine, "[redacted: a line of DEPLOY]"),
		"id:3:" + keyLine:                     "id:3:[redacted: a line of DEPLOY]",
	} {
		if got := r.RedactString(text); got != want {
			t.Errorf("%q became %q", text, got)
		}
	}
	for name, value := range map[string]string{
		"a service account":    `{"type": "service_account", "private_key": "` + strings.ReplaceAll(key, "\n", `\n`) + `"}`,
		"JSON in JSON":         `{"private_key": "` + strings.ReplaceAll(key, "\n", `\\n`) + `"}`,
		"with other ends":      strings.ReplaceAll(key, "\n", "\r\n"),
		"an OpenVPN key":       strings.ReplaceAll(key, "OPENSSH PRIVATE KEY", "OpenVPN Static key V1"),
		"behind a certificate": "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUJ\n-----END CERTIFICATE-----\n" + key,
	} {
		if got := secret.NewRedactor(secret.Secret{Name: "DEPLOY", Value: value}).RedactString("is " + keyLine); got != "is [redacted: a line of DEPLOY]" {
			t.Errorf("%s: a line became %q", name, got)
		}
	}
	unbroken := keyHeader + keyLine + keyLine
	r = secret.NewRedactor(secret.Secret{Name: "DEPLOY", Value: "-----BEGIN OPENSSH PRIVATE KEY-----\n" + unbroken + "\n-----END OPENSSH PRIVATE KEY-----"})
	if got := r.RedactString("is " + unbroken); got != "is [redacted: a line of DEPLOY]" {
		t.Errorf("a key in one line became %q", got)
	}
}

func TestTheCredentialsInAValueOfSeveralLinesAreFoundOneByOne(t *testing.T) {
	for name, c := range map[string]struct{ value, text, want string }{
		"npmrc": {"registry=https://registry.npmjs.org/\n//registry.npmjs.org/:_authToken=npm_0123456789abcdef\n",
			"     2\t//registry.npmjs.org/:_authToken=npm_0123456789abcdef", "     2\t//registry.npmjs.org/:_authToken=[redacted: a part of S]"},
		"netrc": {"machine api.github.com\n  login deploy-of-the-site\n  password correct-horse-battery\n",
			"deploy-of-the-site@api.github.com: correct-horse-battery", "deploy-of-the-site@api.github.com: [redacted: a part of S]"},
		"aws": {"[default]\r\naws_access_key_id = AKIAIOSFODNN7EXAMPLE\r\naws_secret_access_key = wJalrXUtnFEMI/K/MDENG/bPxRfi",
			"[default] AKIAIOSFODNN7EXAMPLE wJalrXUtnFEMI/K/MDENG/bPxRfi", "[default] [redacted: a part of S] [redacted: a part of S]"},
		"git-credentials": {"https://bob:correct-horse-battery@git.example.com\nhttps://ghp_0123456789abcdef:x-oauth-basic@github.com\n",
			"bob: correct-horse-battery ghp_0123456789abcdef github.com", "bob: [redacted: a part of S] [redacted: a part of S] github.com"},
		"a service account in one line": {`{"private_key_id": "0123456789abcdef0123", "private_key": "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n", "client_email": "bot@my-project-123456.iam.gserviceaccount.com"}`,
			"0123456789abcdef0123 my-project-123456.iam.gserviceaccount.com", "[redacted: a part of S] my-project-123456.iam.gserviceaccount.com"},
		"Maven": {"<server>\n  <id>internal-releases</id>\n  <password>correct-horse-battery</password>\n</server>\n",
			"<id>internal-releases</id>: correct-horse-battery", "<id>internal-releases</id>: [redacted: a part of S]"},
		"kubeconfig": {"users:\n- name: gke_project_europe-west1_cluster\n  user:\n    token: eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln-bmF0dXJl\n",
			"gke_project_europe-west1_cluster eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln-bmF0dXJl", "gke_project_europe-west1_cluster [redacted: a part of S]"},
		"names with digits": {"oauth2ClientDescription: some\n\"x509CertificateChain\": 2\nbase64EncodedContent = x\n",
			"oauth2ClientDescription x509CertificateChain base64EncodedContent", "oauth2ClientDescription x509CertificateChain base64EncodedContent"},
		"hosts, projects and people": {"server: https://0A1B2C3D4E5F60718293.gr7.eu-west-1.eks.amazonaws.com\nproject_id: acmeproduction2024\nauthor = christopher-lastname\nkeywords: internationalization\n",
			"0A1B2C3D4E5F60718293.gr7.eu-west-1.eks.amazonaws.com acmeproduction2024 christopher-lastname internationalization",
			"0A1B2C3D4E5F60718293.gr7.eu-west-1.eks.amazonaws.com acmeproduction2024 christopher-lastname internationalization"},
		"capital letters": {"export API_TOKEN=correct-horse-battery\nexport REGION=eu\n", "correct-horse-battery", "[redacted: a part of S]"},
		"a line end":      {"correct-horse-battery-0123456789ab\n", "is correct-horse-battery-0123456789ab.", "is [redacted: a part of S]."},
		"a single line":   {"registry=x _authToken=npm_0123456789abcdef", "npm_0123456789abcdef", "npm_0123456789abcdef"},
	} {
		if got := secret.NewRedactor(secret.Secret{Name: "S", Value: c.value}).RedactString(c.text); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// The square of such a value's length would be minutes at the start of each run.
func TestASecretOfOneLongLineIsTakenApartAtOnce(t *testing.T) {
	for _, part := range []string{"k=", "key=", "a1.=", "http://", "key ", "password ", "key= "} {
		began := processor.Time(t)
		secret.NewRedactor(secret.Secret{Name: "S", Value: strings.Repeat(part, 64<<10/len(part)) + "\n\n-"})
		if took := processor.Time(t) - began; took > 10*time.Second {
			t.Errorf("%q: %s", part, took)
		}
	}
}

// What every file of a kind says, and what is no secret, can be read and written
// although a secret says it, too.
func TestOtherLinesOfAValueStayText(t *testing.T) {
	const npmrc = "registry=https://registry.npmjs.org/\n//registry.npmjs.org/:_authToken=npm_0123456789abcdef\n"
	const encrypted = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF\n\n" + keyLine + "\n-----END RSA PRIVATE KEY-----"
	const certificate = "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUJ\n-----END CERTIFICATE-----\n-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIK\n-----END PUBLIC KEY-----"
	account := "{\n  \"type\": \"service_account\",\n  \"private_key\": \"" + strings.ReplaceAll(key, "\n", `\n`) +
		"\",\n  \"auth_uri\": \"https://accounts.google.com/o/oauth2/auth\",\n  \"bare\": [\nabcdefghijklmnopqrst\n]\n}"
	kept := secret.FromEnvironment([]string{"GCP_SA_KEY=" + account})
	if len(kept) != 1 {
		t.Fatalf("the account is not known: %d", len(kept))
	}
	const token = "npm_0123456789abcdef"
	for _, value := range []string{npmrc, encrypted, certificate, key, account, kept[0].Value} {
		r := secret.NewRedactor(secret.Secret{Name: "S", Value: value})
		for line := range strings.Lines(value) {
			line = strings.TrimSpace(line)
			if got := r.RedactString("1: " + line); got != "1: "+line && !strings.Contains(line, keyLine) && !strings.Contains(line, token) {
				t.Errorf("%q became %q", line, got)
			}
		}
		if got := r.RedactString(value); len(got) > len("${secret:S}\n") {
			t.Errorf("whole it became %q", got)
		}
	}
}

func TestTheLongerOfTwoSecretsWithOneBeginningIsFound(t *testing.T) {
	r := secret.NewRedactor(secret.Secret{Name: "SHORT", Value: "abcdefgh"}, secret.Secret{Name: "LONG", Value: "abcdefghijkl"})
	if got := r.RedactString("abcdefghijkl abcdefghij"); got != "${secret:LONG} ${secret:SHORT}ij" {
		t.Errorf("got %q", got)
	}
}

func TestNothingIsFoundWithoutSecretsOrInTooShortOnes(t *testing.T) {
	none := secret.NewRedactor(secret.Secret{Name: "PIN", Value: "1234567"})
	if none != nil {
		t.Error("a value of seven bytes is looked for")
	}
	if got := none.RedactString("1234567"); got != "1234567" {
		t.Errorf("got %q", got)
	}
	if out, found := none.RedactJSON([]byte(`"1234567"`)); found || string(out) != `"1234567"` {
		t.Errorf("got %s", out)
	}
}

func TestOnlyTheInsidesOfStringsChangeInJSON(t *testing.T) {
	r := secret.NewRedactor(secret.Secret{Name: "N", Value: "1234567890"})
	got, _ := r.RedactJSON([]byte(`{"at":1234567890,"text":"call \"1234567890\" now","list":["1234567890"]}`))
	if want := `{"at":1234567890,"text":"call \"${secret:N}\" now","list":["${secret:N}"]}`; string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestVariablesThatHoldCredentialsAreKnownByTheirNames(t *testing.T) {
	found := secret.FromEnvironment([]string{
		"GITHUB_TOKEN=ghp_0123456789abcdef", "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCY",
		"SESSION=wayland", "DESKTOP_SESSION=gnome-classic", "SSH_AUTH_SOCK=/run/user/1000/keyring/ssh",
		"DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1000/bus", "PATH=/usr/local/sbin:/usr/local/bin", "KEYMAP=us with some spaces in it",
		"EMPTY_TOKEN=", "not a variable", "OPENAI_API_KEY=sk-0123456789abcdef\n", "LANG=en_US.UTF-8-with-a-long-name",
		"DATABASE_URL=postgres://app:correct%20horse%20battery@db.example/app", "CACHE=redis://:0123456789abcdef@cache:6379", "HOMEPAGE=https://example.com/a:b@c",
		"GATEWAY=/6af0123456789abcdef", "GREETING=Bearer 0123456789abcdef0", "SHORT=0123456789",
		"APP_PRIVATE_KEY=-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----\n",
		"DB_PASS=correct-horse-battery", "GITHUB_PAT=11ABCDEFG0123456789", "PATH_TO=x", "OLDPWD=0123456789abcdef", "http_proxy=bob:0123456789abcdef1@proxy:3128",
		"INDEX=https://pypi-AgEIcHlwaS5vcmc3@pypi.example/simple", "STORE=postgres://reporting_service_owner@db.example/app", "ORIGIN=ssh://git@github.com/pawlrun/pawl",
		"REMOTE=https://ghp_0123456789abcdef:x-oauth-basic@github.com/a", "CHARGES=https://sk_live_0123456789ab:@api.example/v1", "MIRROR=https://ci2:0123456789abcdef2@git.example",
		"BOOKS=postgres://reporting_service_owner:hunter2@db.example/app",
	}, "GATEWAY", "GREETING", "SHORT", "UNSET")
	var got []string
	for _, s := range found {
		got = append(got, s.Name+" "+s.Value)
	}
	want := []string{
		"GITHUB_TOKEN ghp_0123456789abcdef", "AWS_SECRET_ACCESS_KEY wJalrXUtnFEMI/K7MDENG/bPxRfiCY", "DBUS_SESSION_BUS_ADDRESS unix:path=/run/user/1000/bus",
		"OPENAI_API_KEY sk-0123456789abcdef", "DATABASE_URL correct%20horse%20battery", "DATABASE_URL correct horse battery", "CACHE 0123456789abcdef",
		"GATEWAY /6af0123456789abcdef", "GREETING 0123456789abcdef0", "GREETING Bearer 0123456789abcdef0",
		"APP_PRIVATE_KEY -----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----", "DB_PASS correct-horse-battery", "GITHUB_PAT 11ABCDEFG0123456789",
		"http_proxy 0123456789abcdef1", "INDEX pypi-AgEIcHlwaS5vcmc3",
		"REMOTE ghp_0123456789abcdef", "CHARGES sk_live_0123456789ab", "MIRROR 0123456789abcdef2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
}

func FuzzRedactJSONKeepsDocumentsValid(f *testing.F) {
	f.Add(`{"a":"12345678"}`, "12345678")
	f.Add(`{"a":"x\"y\\z1234"}`, `x"y\z1234`)
	f.Add(`{"a":"\"y\\z1234"}`, `"y\\z123`)
	f.Add(`{"a":"abcdefgh\"x"}`, `abcdefgh\`)
	f.Add(`{"a":"\u0041bcdefgh"}`, `0041bcdefgh`)
	f.Add(`["\u003cabcdefgh"]`, "<abcdefgh")
	f.Add(`["61 62 63 64\n00000004: 65 66 67 68  efgh\\"]`, "abcdefgh")
	f.Add(`["YWJjZGVm\na\\b:2:Z2hpamts",1]`, "abcdefghijkl")
	f.Add(`{"12345678":1}`, "12345678")
	f.Add(`{"a":"1234567 12345671234567$"}`, "1234567$")
	marks := regexp.MustCompile(`\$\{secret:S\}|\[redacted: an? (line|part|encoding) of S\]`)
	f.Fuzz(func(t *testing.T, doc, value string) {
		r := secret.NewRedactor(secret.Secret{Name: "S", Value: value})
		out, found := r.RedactJSON([]byte(doc))
		if !found && string(out) != doc {
			t.Fatalf("%q became %q though nothing was found", doc, out)
		}
		if json.Valid([]byte(doc)) && !json.Valid(out) {
			t.Fatalf("%q without %q is %q", doc, value, out)
		}
		plain, _ := r.Redact([]byte(doc))
		// What stands before a mark and its own first sign may look like the value.
		for _, kept := range marks.Split(string(plain), -1) {
			if r != nil && strings.Contains(kept, value) {
				t.Fatalf("%q is still in %q", value, plain)
			}
		}
	})
}

func BenchmarkTextWithoutSecrets(b *testing.B) {
	var secrets []secret.Secret
	for i := range 50 {
		secrets = append(secrets, secret.Secret{Name: fmt.Sprintf("S%d", i), Value: fmt.Sprintf("value-%d-of-fifty", i)})
	}
	r := secret.NewRedactor(secrets...)
	text := []byte(strings.Repeat("Nothing of all this is of any value to anybody. ", 200))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		r.Redact(text)
	}
}
