package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
)

// everyday are the commands of a coding agent's session in the repository that
// [repository] makes.
var everyday = strings.Split(strings.TrimSpace(`
ls -la
ls *
git status
git log --oneline -5
find . -name '*.py' -not -path './.git/*' | head -20
grep -rn "x = 1" src --include=*.py | head
cat README.md
sed -n 1,40p src/m1.py
head -5 src/*.py | tail -20
wc -l src/*.py | sort -n | tail -3
git diff --stat
git show HEAD --stat | tail -3
git blame src/m1.py | head -3
git grep -n "x = 7" | head
git ls-files | xargs wc -l | tail -1
find src -name '*.py' -print0 | xargs -0 grep -l "x = 9" | head
find src -name 'm1*.py' -exec grep -l x {} + | head
sed -i s/x/y/ src/m1.py
sed -i s/a/b/ pkg*/*.py
sed -i 's/b/c/' pkg1/*.py && git diff --stat | tail -1
sed -i.bak 's/y/z/' src/m1.py && rm src/m1.py.bak
for f in src/m2?.py; do sed -i 's/x/w/' "$f"; done
for f in $(ls src | head -3); do wc -l src/$f; done
echo 'print("hello")' > hello.py
cat hello.py >> out.txt
mkdir -p out/a/b build/obj
touch a.pyc b.pyc build/x.o build/obj/y.o
touch out/one.txt out/two.txt && for n in one two; do cat out/$n.txt; done
cp src/m1.py out/a/
cp -r src out/src
cp pkg1/*.py src/*2.py out/
bash -c 'cp README.md{,.bak}'
cp out/*.txt .
mv out/a out/c
mv out/f1*.py out/c/
ls src | while read f; do echo $f; done | tail -1
n=$(ls src | wc -l); echo $n
python3 -c 'print(1)' || true
python3 hello.py || true
PYTHONDONTWRITEBYTECODE=1 python3 -m unittest discover -s tests || true
cd src && python3 -m compileall -q . || true
sh run.sh
./run.sh
bash -c 'ls src | wc -l'
timeout 20 sh run.sh > log.txt 2>&1; tail -2 log.txt
go version || true
go vet ./... || true
go test ./... || true
make -n || true
rm *.pyc
rm -f build/*.o build/obj/*.o
rm -rf */__pycache__ .pytest_cache
find . -name '*.pyc' -delete
find . -name __pycache__ -exec rm -rf {} +
chmod -R u+w build
chmod +x run.sh && rm -rf build
rm -rf ./*.bak -- *.egg-info
tar czf out.tgz out && tar tzf out.tgz | tail -1
test -f README.md && echo yes || echo no
diff src/m1.py src/m3.py | head -3; true
git status --short | head -3
rm -rf out out.tgz log.txt out.txt hello.py one.txt two.txt
`), "\n")

// repository makes a git repository of more than 500 files.
func repository(t *testing.T, p project) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git on this machine")
	}
	steps := `mkdir -p src pkg1 pkg2 tests
for i in $(seq 1 260); do echo "x = $i" > src/m$i.py; done
for i in $(seq 1 120); do echo "a = $i" > pkg1/f$i.py; echo "a = $i" > pkg2/f$i.py; done
echo '# A project' > README.md; printf 'all:\n\techo all\n' > Makefile; printf '#!/bin/sh\necho runs\n' > run.sh; chmod +x run.sh
git init -q . && git add -A && git -c user.name=a -c user.email=a@example.com commit -qm first`
	c := exec.Command("sh", "-ec", steps)
	c.Dir = filepath.Join(p.dir, "repo")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("make the repository: %v\n%s", err, out)
	}
}

// rows: ALDO-57
func TestASessionOfSixtyCommandsAsksNothing(t *testing.T) {
	for _, tier := range []string{"bubblewrap", "namespaces", "landlock"} {
		t.Run(tier, func(t *testing.T) {
			if works, err := tierWorks("tier:" + tier); err != nil || !works {
				t.Skipf("the tier %s does not work on this machine: %v", tier, err)
			}
			if tier == "namespaces" && os.Getenv("PAWL_LONG") == "" {
				t.Skip("shows commands what bubblewrap shows; PAWL_LONG=1 runs it")
			}
			var script strings.Builder
			commands := everyday
			if tier != "landlock" { // in which commands share the machine's /tmp
				commands = append(commands[:len(commands):len(commands)], "sh run.sh > /tmp/pawl-session.txt 2>&1; cat /tmp/pawl-session.txt",
					"cp -a . /tmp/pawl-session && cp -r . /tmp/pawl-session/again")
			}
			for _, command := range commands {
				script.WriteString(shellTurn(command))
			}
			p := newProject(t, map[string]string{
				"agent.yaml": `
identity: {name: coder}
model_policy: {primary: {model: scripted/script.yaml}}
tools: {allow: [shell.exec, fs.read, fs.write]}
iteration: {max_cycles: ` + strconv.Itoa(len(commands)) + "}\n",
				"script.yaml": script.String(),
			})
			if err := os.Mkdir(filepath.Join(p.dir, "repo"), 0o700); err != nil {
				t.Fatal(err)
			}
			repository(t, p)
			s := p.startWith([]string{"PAWL_SANDBOX=" + tier}, "run", "agent.yaml", "Work.", "--workspace", "repo", "--json")
			end := s.wait()
			events := p.events(end.out)
			for _, asked := range of[event.ToolPendingApproval](events) {
				t.Errorf("asked about %s by %s: %s", asked.Args, asked.Rule, asked.Reason)
			}
			results := of[event.ToolResult](events)
			for i, r := range results {
				if r.IsError {
					t.Errorf("%s: %.300s", commands[i], r.Output)
				}
			}
			if end.code != 0 || len(results) != len(commands) || len(commands) < 60 {
				t.Errorf("exit code %d, %d results of %d commands, %+v\n%s", end.code, len(results), len(commands), p.outcome(events), end.err)
			}
		})
	}
}
