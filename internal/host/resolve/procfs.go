package resolve

import "strings"

// ofProcess reports whether a path leads through a process's open files or directories.
// Such a path differs for each process, so its target for the command is unknown here.
func ofProcess(abs string) bool {
	through := false
	visit(abs, func(name string) {
		parts := strings.Split(name, "/")
		through = through || len(parts) > 3 && parts[1] == "proc" && strings.Contains(" cwd root exe fd map_files task ", " "+parts[3]+" ")
	})
	return through && abs != "/dev/stdin"
}
