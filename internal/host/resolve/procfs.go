package resolve

import "strings"

// ofProcess reports whether a path leads through what a process has open, or
// through where it is: to another place for each process, so that where it leads
// for the command is not known to anybody else.
func ofProcess(abs string) bool {
	through := false
	visit(abs, func(name string) {
		parts := strings.Split(name, "/")
		through = through || len(parts) > 3 && parts[1] == "proc" && strings.Contains(" cwd root exe fd map_files task ", " "+parts[3]+" ")
	})
	return through && abs != "/dev/stdin"
}
