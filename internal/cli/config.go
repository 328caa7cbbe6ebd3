package cli

import (
	"os"
	"path/filepath"

	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/models"
)

// config reads the config file: the one that the command line names, or
// $PAWL_CONFIG, or the first customary place that has one. The files are not
// merged, so that one file shows all settings.
func (a *app) config() (models.Config, error) {
	path, err := a.configFile()
	if path == "" || err != nil {
		return models.Config{}, err
	}
	c, err := launch.ReadConfig(path)
	if err != nil {
		return c, usagef("the config file has errors:\n%w", err)
	}
	return c, nil
}

// configFile returns the path of the config file, or "" if there is none. A named
// file must exist.
func (a *app) configFile() (string, error) {
	for _, named := range []struct{ path, by string }{{a.configPath, "--config"}, {os.Getenv("PAWL_CONFIG"), "$PAWL_CONFIG"}} {
		if named.path == "" {
			continue
		}
		if info, err := os.Stat(named.path); err != nil || info.IsDir() {
			return "", usagef("%s names %s, which is not a file", named.by, named.path)
		}
		return named.path, nil
	}
	for _, path := range configPaths() {
		// An unreadable place counts as empty: services run with the home directory
		// of another user.
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", nil
}

func configPaths() []string {
	places := []string{filepath.Join(nearest(), "config.yaml")}
	dir := os.Getenv("XDG_CONFIG_HOME")
	if home, err := os.UserHomeDir(); dir == "" && err == nil {
		dir = filepath.Join(home, ".config")
	}
	if dir != "" {
		places = append(places, filepath.Join(dir, "pawl", "config.yaml"))
	}
	return places
}
