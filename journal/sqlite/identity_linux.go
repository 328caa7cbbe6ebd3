package sqlite

import "golang.org/x/sys/unix"

// readIdentity reads only a file's number. Once a program has read a file's times as well,
// Linux stamps the next write to it with the exact time (multigrain timestamps,
// since 6.13), where otherwise writes of one clock tick share theirs; the file's
// inode is then new with every commit, and some file systems write it in the
// commit's sync.
func readIdentity(path string) (identity, error) {
	var st unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO, &st) != nil {
		return stat(path) // a system without statx, or a sandbox that refuses it
	}
	return identity{dev: unix.Mkdev(st.Dev_major, st.Dev_minor), ino: st.Ino}, nil
}
