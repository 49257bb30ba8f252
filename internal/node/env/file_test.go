// SPDX-License-Identifier: Apache-2.0

package env

import (
	"io/fs"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// TestFileValue proves PL-27: the form of environment files, and what is wrong in them.
func TestFileValue(t *testing.T) {
	for name, c := range map[string]struct{ text, want, fail string }{
		"plain":                    {"A='1'\nKEY='value'\n", "value", ""},
		"first of two":             {"KEY='one'\nKEY='two'\n", "one", ""},
		"no newline at the end":    {"KEY='value'", "value", ""},
		"not there":                {"A='1'\n", "", ""},
		"empty file":               {"", "", ""},
		"several lines":            {"A='x\ny'\nKEY='one\n # two\n\nthree' # and a word\n", "one\n # two\n\nthree", ""},
		"comments, indentation":    {"# KEY='no'\n\n \t\n  KEY='yes'\t# KEY\n", "yes", ""},
		"nothing is expanded":      {`KEY='$(A) \n "x"'`, `$(A) \n "x"`, ""},
		"with =":                   {"KEY='a=b'", "a=b", ""},
		"space behind =":           {"KEY= 'x'\nKEY='y'\n", "", ""},
		"space behind another's =": {"A= x\nKEY='y'\n", "y", ""},
		"carriage returns":         {"A='1'\r\nKEY='v'\r\n", "v", ""},
		"wrong behind it":          {"KEY='v'\nnonsense\n", "v", ""},
		"space before =":           {"A ='1'\nKEY='v'", "", "line 1: white space before"},
		"no =":                     {"A='1'\nnonsense\nKEY='v'", "", "line 2: missing '='"},
		"no name":                  {"='1'", "", "line 1: the variable has no name"},
		"no quotes":                {"KEY=value", "", "single quotes"},
		"double quotes":            {`KEY="value"`, "", "single quotes"},
		"not closed":               {"\nKEY='value\nmore\n", "", "line 2: the single quote is not closed"},
		"something behind":         {"KEY='a'b", "", "line 1: something stands behind"},
	} {
		got, err := FileValue(c.text, "KEY")
		if got != c.want || (err != nil) != (c.fail != "") || err != nil && !strings.Contains(err.Error(), c.fail) {
			t.Errorf("PL-27 %s: %q, %v; want %q, %q", name, got, err, c.want, c.fail)
		}
	}
}

// TestFileKeyRef proves PL-27: what is missing is an error, unless it is optional; what is malformed always is.
func TestFileKeyRef(t *testing.T) {
	files := map[string]string{"a/good": "KEY='v'\nEMPTY=''\n", "bad": "KEY=v"}
	for name, c := range map[string]struct {
		path, key string
		optional  bool
		want      string
		there     bool
		fail      string
	}{
		"there":                  {path: "a/good", key: "KEY", want: "v", there: true},
		"there, optional":        {path: "a/good", key: "KEY", optional: true, want: "v", there: true},
		"no key":                 {path: "a/good", key: "OTHER", fail: `key "OTHER" not found in file "a/good" of volume "vol"`},
		"no key, optional":       {path: "a/good", key: "OTHER", optional: true},
		"empty":                  {path: "a/good", key: "EMPTY", fail: "not found"},
		"no file":                {path: "none", key: "KEY", fail: `cannot read file "none" of volume "vol"`},
		"no file, optional":      {path: "none", key: "KEY", optional: true},
		"malformed":              {path: "bad", key: "KEY", fail: "couldn't parse env file"},
		"malformed and optional": {path: "bad", key: "KEY", optional: true, fail: "couldn't parse env file"},
	} {
		in := base()
		in.File = func(volume, path string) ([]byte, error) {
			if text, ok := files[path]; ok && volume == "vol" {
				return []byte(text), nil
			}
			return nil, fs.ErrNotExist
		}
		in.Container.Env = []corev1.EnvVar{{Name: "X", ValueFrom: &corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{
			VolumeName: "vol", Path: c.path, Key: c.key, Optional: ptr.To(c.optional)}}}}
		vars, err := Build(in)
		if (err != nil) != (c.fail != "") || err != nil && !strings.Contains(err.Error(), c.fail) {
			t.Errorf("PL-27 %s: %v, want %q", name, err, c.fail)
			continue
		}
		got, there := "", false
		for _, v := range vars {
			if v.GetKey() == "X" {
				got, there = string(v.GetValue()), true
			}
		}
		if got != c.want || there != c.there {
			t.Errorf("PL-27 %s: %q, there: %v", name, got, there)
		}
	}
}

// FuzzFileValue: whatever a container wrote, a value is a part of it, and nothing else happens.
func FuzzFileValue(f *testing.F) {
	f.Add("A='1'\nKEY='a\nb' # c\n", "KEY")
	f.Add("KEY='", "KEY")
	f.Fuzz(func(t *testing.T, text, key string) {
		got, err := FileValue(text, key)
		if err != nil && got != "" || !strings.Contains(strings.ReplaceAll(text, "\r", ""), strings.ReplaceAll(got, "\r", "")) {
			t.Errorf("%q, %v from %q", got, err, text)
		}
	})
}
