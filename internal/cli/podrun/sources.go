// SPDX-License-Identifier: Apache-2.0

package podrun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/wherryproject/wherry/internal/manifest"
)

// fetchPatience is how long a manifest's web server is waited for.
const fetchPatience = time.Minute

// Sources reads manifests by what -f names: a file, a folder, a URL, or - for standard input.
type Sources struct {
	Stdin io.Reader
	HTTP  *http.Client // nil: the usual one
}

// Read reads all of them. What is wrong with the manifests is a manifest.Errors of all faults.
func (s Sources) Read(ctx context.Context, names []string) ([]manifest.Object, error) {
	var all []manifest.Object
	var faults manifest.Errors
	stdin := false
	for _, name := range names {
		if name == "-" && stdin {
			return nil, errors.New("-f - is given twice, but standard input can only be read once")
		}
		stdin = stdin || name == "-"
		objects, err := s.source(ctx, name)
		if more, ok := errors.AsType[manifest.Errors](err); ok {
			faults = append(faults, more...)
		} else if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	if len(faults) > 0 {
		return nil, faults
	}
	return all, nil
}

func (s Sources) source(ctx context.Context, name string) ([]manifest.Object, error) {
	switch {
	case name == "-":
		return manifest.Read("standard input", s.Stdin)
	case isURL(name):
		return s.fetch(ctx, name)
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return s.readFolder(ctx, name)
	}
	return readFile(name)
}

func isURL(name string) bool {
	return strings.HasPrefix(name, "https://") || strings.HasPrefix(name, "http://")
}

func readFile(name string) ([]manifest.Object, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return manifest.Read(name, file)
}

// manifestEndings are those of the files that are read of a folder, as kubectl does.
var manifestEndings = []string{".yaml", ".yml", ".json"}

// readFolder reads a folder's manifests in the order of their names, not those of folders in it.
func (s Sources) readFolder(ctx context.Context, folder string) ([]manifest.Object, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() && slices.Contains(manifestEndings, filepath.Ext(e.Name())) {
			names = append(names, filepath.Join(folder, e.Name()))
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: there is no manifest in this folder: none of its files ends in %s", folder,
			strings.Join(manifestEndings, ", "))
	}
	return s.Read(ctx, names)
}

func (s Sources) fetch(ctx context.Context, url string) ([]manifest.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchPatience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	client := s.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: the server answered %s", url, resp.Status)
	}
	if kind := resp.Header.Get("Content-Type"); strings.HasPrefix(kind, "text/html") {
		return nil, fmt.Errorf("%s is a web page, not a manifest: find the address of the file itself (on GitHub: Raw)",
			url)
	}
	return manifest.Read(url, resp.Body)
}
