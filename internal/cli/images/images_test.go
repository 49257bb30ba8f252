// SPDX-License-Identifier: Apache-2.0

package images

import (
	"bytes"
	"strings"
	"testing"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/server/hostapi"
)

var someImages = []hostapi.Image{
	{ID: "sha256:aaaaaaaaaaaaaaaa", Tags: []string{"docker.io/library/busybox:1.37"},
		Digests: []string{"docker.io/library/busybox@sha256:bb"}, Size: 2 << 20},
	{ID: "sha256:cccccccccccccccc", Tags: []string{"reg.example/team/app:1", "reg.example/team/app:stable"}, Size: 512},
	{ID: "sha256:dddddddddddddddd"},
}

// Patterns and filters choose images, a pattern without a tag all tags.
func TestImageListWanted(t *testing.T) {
	for name, c := range map[string]struct {
		patterns, filters []string
		want              string
	}{
		"all":               {nil, nil, "acd"},
		"short name":        {[]string{"busybox"}, nil, "a"},
		"pattern":           {[]string{"reg.example/team/*"}, nil, "c"},
		"one of two":        {[]string{"busybox", "reg.example/**"}, nil, "ac"},
		"tag":               {[]string{"reg.example/team/app:2"}, nil, ""},
		"dangling":          {nil, []string{"dangling=true"}, "d"},
		"not dangling":      {nil, []string{"dangling=false"}, "ac"},
		"reference":         {nil, []string{"reference=busybox:1.37"}, "a"},
		"both":              {[]string{"**"}, []string{"dangling=false", "reference=reg.example/**"}, "c"},
		"no such filter":    {nil, []string{"label=x"}, "use dangling=true"},
		"no such dangling":  {nil, []string{"dangling=maybe"}, "use dangling=true"},
		"bad pattern":       {[]string{"a/**/b"}, nil, "is not a pattern"},
		"bad reference":     {nil, []string{"reference="}, "is not a pattern"},
		"no image of these": {[]string{"nginx"}, nil, ""},
	} {
		wanted, err := (&imageListFlags{filters: c.filters}).wanted(c.patterns)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			for _, i := range choose(someImages, wanted) {
				got += i.ID[7:8]
			}
		}
		if got != c.want && (err == nil || !strings.Contains(got, c.want)) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// Of an image with several names those are listed that a pattern stands for.
func TestImageListNames(t *testing.T) {
	wanted, err := (&imageListFlags{}).wanted([]string{"reg.example/team/app:stable"})
	if err != nil {
		t.Fatal(err)
	}
	got := choose(someImages, wanted)
	if len(got) != 1 || len(got[0].Tags) != 1 || got[0].Tags[0] != "reg.example/team/app:stable" ||
		len(someImages[1].Tags) != 2 {
		t.Errorf("got %+v of %+v", got, someImages[1])
	}
}

func TestImageListPrint(t *testing.T) {
	for name, c := range map[string]struct {
		flags imageListFlags
		want  []string
	}{
		"table": {imageListFlags{}, []string{"IMAGE  ", "docker.io/library/busybox:1.37   aaaaaaaaaaaa   2.0MiB",
			"app:stable", "<none>"}},
		"quiet": {imageListFlags{quiet: true}, []string{"docker.io/library/busybox:1.37\n",
			"\nreg.example/team/app:1\n", "dddddddddddd\n"}},
		"whole":  {imageListFlags{whole: true}, []string{"sha256:aaaaaaaaaaaaaaaa"}},
		"digest": {imageListFlags{digests: true}, []string{"DIGEST", "sha256:bb", "<none>"}},
	} {
		var out bytes.Buffer
		if err := c.flags.print(&out, someImages); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: no %q in\n%s", name, want, out.String())
			}
		}
	}
}

// Credentials come from the flag, from standard input, or from a person; without any of these it is said how to give
// them.
func TestCredentials(t *testing.T) {
	in := func(text string) cmdline.Terminal {
		return cmdline.Terminal{In: strings.NewReader(text), Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}
	}
	if l, err := credentials(in(""), ""); l != nil || err != nil {
		t.Errorf("none: %v, %v", l, err)
	}
	if l, err := credentials(in(""), "ann:a:b"); err != nil || l.User != "ann" || l.Password != "a:b" {
		t.Errorf("both: %v, %v", l, err)
	}
	if _, err := credentials(in(""), "ann"); err == nil || !strings.Contains(err.Error(), "no terminal to prompt on") {
		t.Errorf("user alone: %v", err)
	}
	if l, err := askLogin(in("secret word\n"), "ann", "", true); err != nil || l.Password != "secret word" {
		t.Errorf("standard input: %v, %v", l, err)
	}
	if _, err := askLogin(in("\n"), "ann", "", true); err == nil || !strings.Contains(err.Error(), "no password") {
		t.Errorf("empty standard input: %v", err)
	}
}
