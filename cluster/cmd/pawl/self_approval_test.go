package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/cluster/journal/postgres"
	"github.com/pawlrun/pawl/journal"
)

// The first call attacks, and the second waits for a person. The address and the schema
// are in the command: an attacker may know them.
const attacker = `
identity: {name: attacker}
model_policy: {primary: {model: scripted/script.yaml}}
tools:
  allow: [shell.exec, fs.write]
  permissions: {NETWORK}
  approvals: {shell.exec: never, fs.write: always}
`

// attack tries to reach the database in each way that a command has. It prints what it
// finds: the password, or a connection.
const attack = `
env | grep -i -e PGPASS -e postgres
cat /proc/*/environ 2>/dev/null | tr '\0' '\n' | grep -e PGPASSWORD
bash -c 'exec 3<>/dev/tcp/127.0.0.1/PORT && echo connected to 127.0.0.1' 2>/dev/null
bash -c 'exec 3<>/dev/tcp/localhost/PORT && echo connected to localhost' 2>/dev/null
PSQL "URL" -c "DELETE FROM SCHEMA.inbox" 2>/dev/null && echo connected with psql
for proxy in "$HTTP_PROXY" "$HTTPS_PROXY" "$http_proxy"; do
	test -z "$proxy" || test "$(curl -s -m 5 -p -x "$proxy" http://127.0.0.1:PORT/ -o /dev/null -w '%{http_connect}')" != 200 || echo connected through the proxy
done
echo the attack is over
`

const (
	allowlist = `network: allowlist, hosts: ["*.example.com"]`
	// opened names the database.
	opened = `network: allowlist, hosts: [127.0.0.1, localhost], private_hosts: [127.0.0.1, localhost]`
)

// Without a sandbox the attack connects: it shows what the sandboxes hold.
func TestACommandCannotApproveItsCallInTheDatabase(t *testing.T) {
	for _, c := range []struct {
		tier, permissions string
		connects          bool
	}{{"bubblewrap", allowlist, false}, {"namespaces", allowlist, false}, {"namespaces", opened, false}, {"none", "git: ask", true}} {
		t.Run(c.tier+"/"+c.permissions, func(t *testing.T) {
			tier, p := c.tier, newProject(t, "attack")
			fill := strings.NewReplacer("PORT", strconv.Itoa(server.Port), "URL", server.URL(), "SCHEMA", p.schema, "PSQL", server.Program("psql"))
			for name, text := range map[string]string{
				"attacker.yaml": strings.Replace(attacker, "NETWORK", c.permissions, 1), "attack.sh": fill.Replace(attack),
				"script.yaml": "- {tool_calls: [{name: shell.exec, arguments: {command: sh attack.sh}}]}\n- {tool_calls: [{name: fs.write, arguments: {path: x, content: y}}]}\n- text: done\n",
			} {
				if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cmd := p.command("run", "attacker.yaml", "go", "--json")
			cmd.Env = append(cmd.Env, "PAWL_SANDBOX="+tier)
			out, err := cmd.CombinedOutput()
			if tier != "none" && strings.Contains(string(out), "without a sandbox") {
				t.Skipf("the tier %s does not work here: %s", tier, out)
			}
			s, openErr := postgres.Open(t.Context(), p.journal, postgres.Options{ReadOnly: true})
			if openErr != nil {
				t.Fatal(openErr)
			}
			defer s.Close()
			rows, listErr := s.Runs(t.Context(), journal.Filter{})
			if listErr != nil || len(rows) != 1 || rows[0].State != journal.Parked {
				t.Fatalf("the run does not wait for a person: %+v, %v, %v\n%s", rows, listErr, err, out)
			}
			records, readErr := s.Records(t.Context(), rows[0].ID, 0, 0)
			var all strings.Builder
			for _, r := range records {
				all.Write(r.Body)
			}
			if readErr != nil || !strings.Contains(all.String(), "the attack is over") || strings.Contains(all.String(), "connected") != c.connects || strings.Contains(all.String(), password) {
				t.Errorf("the attack: %v\n%s", readErr, &all)
			}
		})
	}
}

// A sandbox with the network of the machine reaches the database, so no run begins.
func TestTheNetworkOfTheMachineIsRefusedBesideADatabase(t *testing.T) {
	p := newProject(t, "attack_host")
	p.write(t, "attacker.yaml", strings.Replace(attacker, "NETWORK", "network: host", 1))
	p.write(t, "other.yaml", strings.Replace(agent, "      command:", "      network: host\n      command:", 1))
	for _, file := range []string{"attacker.yaml", "other.yaml"} {
		cmd := p.command("run", file, "go")
		cmd.Env = append(cmd.Env, "PAWL_SANDBOX=namespaces")
		out, err := cmd.CombinedOutput()
		if strings.Contains(string(out), "without a sandbox") {
			t.Skipf("there is no sandbox here: %s", out)
		}
		if err == nil || !strings.Contains(string(out), "reaches the database of the journal") || !strings.Contains(string(out), "network") {
			t.Errorf("%s: %v: %s", file, err, out)
		}
	}
}
