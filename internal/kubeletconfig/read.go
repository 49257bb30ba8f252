// SPDX-License-Identifier: Apache-2.0

package kubeletconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/wherryproject/wherry/internal/quantities"
)

// Flag is a flag with the value that the files give it, as it is written on a command line.
type Flag struct {
	Name, Value string
	Field       string // that it is from
}

// Result is what the files say.
type Result struct {
	Flags []Flag // in the order of the fields' names
	// Ignored are the fields that are set and have no effect, each with the reason.
	Ignored []string
}

// Read reads a configuration file (--config) and a folder (--config-dir) of files that add to it or override it, the
// later ones in the order of their names the earlier (*.conf); either may be "".
func Read(file, folder string) (Result, error) {
	all := map[string]any{}
	if file != "" {
		if err := add(all, file); err != nil {
			return Result{}, fmt.Errorf("--config: %w", err)
		}
	}
	names, err := files(folder)
	for i := 0; err == nil && i < len(names); i++ {
		err = add(all, names[i])
	}
	if err != nil {
		return Result{}, fmt.Errorf("--config-dir: %w", err)
	}
	got, err := decide(all)
	switch {
	case err != nil && file == "":
		return Result{}, fmt.Errorf("--config-dir: %w", err)
	case err != nil:
		return Result{}, fmt.Errorf("--config: %w", err)
	}
	return got, nil
}

// add reads a file and puts it over those before it.
func add(all map[string]any, name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	one, err := parse(text)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	merge(all, one)
	return nil
}

// files are those of a folder that are read.
func files(folder string) (names []string, err error) {
	if folder == "" {
		return nil, nil
	}
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) == ".conf" {
			names = append(names, path)
		}
		return err
	})
	return names, err
}

// parse reads one file: a KubeletConfiguration, with no field that the type does not have. (Pure.)
func parse(text []byte) (map[string]any, error) {
	if why := quantities.Endless(text, "yaml"); why != "" {
		return nil, errors.New(why)
	}
	var typed kubeletv1beta1.KubeletConfiguration
	if err := yaml.UnmarshalStrict(text, &typed); err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "error unmarshaling JSON: while decoding JSON: json: "))
	}
	if typed.Kind != "KubeletConfiguration" || typed.APIVersion != kubeletv1beta1.SchemeGroupVersion.String() {
		return nil, fmt.Errorf("kind %q of apiVersion %q: it must be a KubeletConfiguration of %s", typed.Kind,
			typed.APIVersion, kubeletv1beta1.SchemeGroupVersion)
	}
	out := map[string]any{}
	err := yaml.Unmarshal(text, &out, func(d *json.Decoder) *json.Decoder { d.UseNumber(); return d })
	delete(out, "kind")
	delete(out, "apiVersion")
	return out, err
}

// merge puts one file over those before it: objects field by field, lists as a whole. (Pure.)
func merge(into, over map[string]any) {
	for name, v := range over {
		below, ok := v.(map[string]any)
		had, both := into[name].(map[string]any)
		if ok && both {
			merge(had, below)
			continue
		}
		into[name] = v
	}
}

// tables say what becomes of each field; each is in one of them.
type tables struct {
	flags map[string]asFlag
	does  map[string][]string // the values that are so in any case
	lacks map[string]string   // why a field has no effect
}

func allTables() tables { return tables{flagTable(), doesTable(), lacksTable()} }

// has reports whether a field is in a table, as a whole.
func (t tables) has(path string) bool {
	return t.flags[path] != nil || t.does[path] != nil || t.lacks[path] != ""
}

// decide turns fields into flags. (Pure.)
func decide(all map[string]any) (out Result, err error) {
	t := allTables()
	var errs []error
	for _, path := range t.paths("", all) {
		v := at(all, path)
		switch text := shown(v); {
		case empty(v), unset(path, text):
		case t.flags[path] != nil:
			flag, err := t.flags[path](path, v)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", path, err))
				continue
			}
			out.Flags = append(out.Flags, flag)
		case slices.Contains(t.does[path], text):
		case t.does[path] != nil:
			out.Ignored = append(out.Ignored, fmt.Sprintf("%s: %s (it is always %s)", path, text,
				strings.Join(t.does[path], " or ")))
		default:
			out.Ignored = append(out.Ignored, fmt.Sprintf("%s: %s (%s)", path, text, t.lacks[path]))
		}
	}
	return out, errors.Join(errs...)
}

// paths lists the fields that are set, by the tables' names, in order.
func (t tables) paths(prefix string, v map[string]any) (out []string) {
	for name, value := range v {
		path := prefix + name
		below, ok := value.(map[string]any)
		if ok && !t.has(path) {
			out = append(out, t.paths(path+".", below)...)
			continue
		}
		out = append(out, path)
	}
	slices.Sort(out)
	return out
}

// empty reports whether a value is the same as none in a kubelet's file, as tools write it for all fields that they
// leave to the kubelet.
func empty(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, one := range v {
			if !empty(one) && one != false {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	case string:
		return v == "" || v == "0s" || v == "0"
	}
	return v == nil
}

// unset: numbers that stand for the kubelet's default.
func unset(path, text string) bool {
	return text == "0" && slices.Contains([]string{"port", "maxPods", "logging.verbosity", "logging.flushFrequency"},
		path)
}

func at(v map[string]any, path string) any {
	first, rest, more := strings.Cut(path, ".")
	below, ok := v[first].(map[string]any)
	if !more || !ok {
		return v[first]
	}
	return at(below, rest)
}

// shown is a value as a person wrote it.
func shown(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}
