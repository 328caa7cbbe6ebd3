package crash

import (
	"bytes"
	"database/sql"
	"strings"
	"testing"
)

func TestADamagedRunIsNotResumedAndVerifySaysWhere(t *testing.T) {
	w := newWorld(t, `
- tool_calls:
    - {name: shell.exec, arguments: {command: "touch started; sleep 60"}}
- tool_calls:
    - {name: shell.exec, arguments: {command: "echo ran >> effects"}}
- text: done
`)
	park(t, w)
	row, _, _ := w.theRun(t)
	db, err := sql.Open("sqlite", w.path(".pawl/journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var seq string
	err = db.QueryRow(`
UPDATE log SET body = CAST(replace(CAST(body AS TEXT), 'sleep 60', 'sleep 61') AS BLOB)
WHERE type = 'tool_call' RETURNING seq`).Scan(&seq)
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"resume", "verify"} {
		var out bytes.Buffer
		cmd := w.command("runs", verb, row.ID)
		cmd.Stdout, cmd.Stderr = &out, &out
		err := cmd.Run()
		if said := out.String(); err == nil || !strings.Contains(said, "damaged at event "+seq) {
			t.Errorf("%s: %v\n%s\nwant it to name event %s", verb, err, said, seq)
		}
	}
	if effects := w.read(t, "effects"); effects != "" {
		t.Errorf("a damaged run went on: %q", effects)
	}
}
