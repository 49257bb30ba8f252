// SPDX-License-Identifier: Apache-2.0

package images

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/server/hostapi"
)

// --format has docker's fields, on a line for each name of an image; json is a line of JSON, table a table.
func TestImageListFormat(t *testing.T) {
	for format, want := range map[string]string{
		"{{.Repository}}:{{.Tag}}":         "docker.io/library/busybox:1.37\nreg.example/team/app:1\nreg.example/team/app:stable\n<none>:<none>\n",
		"{{.ID}} {{.Size}}":                "aaaaaaaaaaaa 2.0MiB\ncccccccccccc 0.5KiB\ncccccccccccc 0.5KiB\ndddddddddddd 0.0KiB\n",
		`table {{.ID}}\t{{.Tag}}`:          "IMAGE ID       TAG\naaaaaaaaaaaa   1.37\ncccccccccccc   1\ncccccccccccc   stable\ndddddddddddd   <none>\n",
		"{{upper .Tag}}{{.Digest | json}}": "1.37\"sha256:bb\"\n1\"<none>\"\nSTABLE\"<none>\"\n<NONE>\"<none>\"\n",
		"json":                             `{"Repository":"docker.io/library/busybox","Tag":"1.37","Digest":"sha256:bb","ID":"aaaaaaaaaaaa","Size":"2.0MiB"}` + "\n",
	} {
		f := &imageListFlags{format: format}
		show, err := f.shown()
		if err != nil {
			t.Errorf("%s: %v", format, err)
			continue
		}
		var out bytes.Buffer
		if err := show(cmdline.Terminal{Out: &out}, someImages); err != nil || !strings.HasPrefix(out.String(), want) {
			t.Errorf("%s: %v\n%swant\n%s", format, err, out.String(), want)
		}
		if format != "json" && out.String() != want {
			t.Errorf("%s: more than\n%s", format, want)
		}
	}
}

// What is wrong with a --format is said, and nothing is printed then.
func TestImageFormatRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		flags imageListFlags
		want  string
	}{
		"no template":  {imageListFlags{format: "{{.ID"}, "--format is not a Go template"},
		"empty":        {imageListFlags{format: " "}, "use json or a Go template"},
		"empty table":  {imageListFlags{format: "table "}, "use json or a Go template"},
		"with -o":      {imageListFlags{format: "json", output: "json"}, "exclude each other"},
		"with -q":      {imageListFlags{format: "json", quiet: true}, "exclude each other"},
		"no function":  {imageListFlags{format: "{{env .ID}}"}, `function "env" not defined`},
		"no such part": {imageListFlags{format: "{{.ID}}{{.Created}}"}, "can't evaluate field Created"},
	} {
		show, err := c.flags.shown()
		var out bytes.Buffer
		if err == nil {
			err = show(cmdline.Terminal{Out: &out}, someImages)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || out.Len() > 0 {
			t.Errorf("%s: %v, printed %q", name, err, out.String())
		}
	}
}

// An inspection's template has the fields that -o json shows.
func TestImageInspectFormat(t *testing.T) {
	all, err := asShown([]hostapi.Image{{ID: "sha256:aa", Tags: []string{"x:1"}, Size: 123456789,
		Spec: json.RawMessage(`{"config":{"Env":["A=<b>"]}}`)}})
	if err != nil {
		t.Fatal(err)
	}
	for format, want := range map[string]string{
		"{{.id}} {{.size}} {{index .tags 0}} {{json .spec.config.Env}}": `sha256:aa 123456789 x:1 ["A=<b>"]` + "\n",
		"json": `{"id":"sha256:aa","size":123456789,"spec":{"config":{"Env":["A=<b>"]}},"tags":["x:1"]}` + "\n",
	} {
		l, err := parseLayout(format)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := l.write(&out, all); err != nil || out.String() != want {
			t.Errorf("%s: %v, %q", format, err, out.String())
		}
	}
	l, err := parseLayout("{{.nothing}}")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.write(&bytes.Buffer{}, all); err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("a field that is not there: %v", err)
	}
}

func TestSplit(t *testing.T) {
	for name, want := range map[string][2]string{
		"docker.io/library/busybox:1.37":    {"docker.io/library/busybox", "1.37"},
		"localhost:5000/app":                {"localhost:5000/app", none},
		"localhost:5000/app:1@sha256:aaaa":  {"localhost:5000/app", "1"},
		"docker.io/library/busybox@sha256:": {"docker.io/library/busybox", none},
	} {
		if repository, tag := split(name); repository != want[0] || tag != want[1] {
			t.Errorf("%s: %q, %q", name, repository, tag)
		}
	}
}

// -i and arguments name what is imported.
func TestArchives(t *testing.T) {
	for name, c := range map[string]struct {
		sources, inputs []string
		want            []string
		says            string
	}{
		"an argument": {[]string{"a.tar"}, nil, []string{"a.tar"}, ""},
		"-i":          {nil, []string{"a.tar"}, []string{"a.tar"}, ""},
		"both":        {[]string{"docker:b"}, []string{"-"}, []string{"-", "docker:b"}, ""},
		"- twice":     {[]string{"-"}, []string{"-"}, nil, "can only be read once"},
	} {
		got, err := archives(c.sources, c.inputs)
		if !slices.Equal(got, c.want) || (err == nil) != (c.says == "") ||
			err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// docker's shorthands are there.
func TestDockerFlags(t *testing.T) {
	image := NewImage(cmdline.Terminal{})
	for path, flags := range map[string][]string{"import": {"input i"}, "ls": {"filter f", "format ", "quiet q"},
		"pull": {"quiet q"}, "inspect": {"format f"}} {
		cmd, _, err := image.Find([]string{path})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range flags {
			name, short, _ := strings.Cut(f, " ")
			if flag := cmd.Flags().Lookup(name); flag == nil || flag.Shorthand != short {
				t.Errorf("%s has no --%s with -%s: %v", path, name, short, flag)
			}
		}
	}
	if cmd, _, err := image.Find([]string{"load"}); err != nil || cmd.Name() != "import" {
		t.Errorf("load is %v, %v", cmd.Name(), err)
	}
	images := NewImages(cmdline.Terminal{})
	complete, ok := images.GetFlagCompletionFunc("filter")
	if !ok {
		t.Fatal("--filter is not completed")
	}
	if words, _ := complete(images, nil, ""); !slices.Contains(words, "dangling=true") {
		t.Errorf("--filter is completed by %q", words)
	}
}
