// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// EC-16: what a log has is written once, from where somebody knows it on; a line that is not whole yet is left for later.
func TestReplay(t *testing.T) {
	const at = "2026-11-20T12:00:00Z "
	first, second := at+"stdout F one\n"+at+"stderr F oops\n", at+"stdout P tw\n"+at+"stdout F o\n"
	path := filepath.Join(t.TempDir(), "0.log")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		file        string
		from, most  int64
		out, errs   string
		to          int64
		stdoutAlone bool
	}{
		"all":                 {file: first + second, most: 1 << 20, out: "one\ntwo\n", errs: "oops\n", to: int64(len(first + second))},
		"from somewhere":      {file: first + second, from: int64(len(first)), most: 1 << 20, out: "two\n", to: int64(len(first + second))},
		"nothing new":         {file: first, from: int64(len(first)), most: 1 << 20, to: int64(len(first))},
		"a line is torn":      {file: first + second[:len(second)-3], from: int64(len(first)), most: 1 << 20, out: "tw", to: int64(len(first) + len(at) + len("stdout P tw\n"))},
		"the file is new":     {file: first, from: 1 << 30, most: 1 << 20, out: "one\n", errs: "oops\n", to: int64(len(first))},
		"the end of much":     {file: strings.Repeat(first, 1000), most: int64(len(first)) + 5, out: "one\n", errs: "oops\n", to: int64(1000 * len(first))},
		"nobody wants errors": {file: first, most: 1 << 20, out: "one\n", to: int64(len(first)), stdoutAlone: true},
		"no sense":            {file: "nonsense\n" + first, most: 1 << 20, out: "one\n", errs: "oops\n", to: int64(len("nonsense\n" + first))},
	} {
		write(c.file)
		var out, errs strings.Builder
		to, err := Replay(path, c.from, c.most, &out, &errs)
		if c.stdoutAlone {
			out.Reset()
			errs.Reset()
			to, err = Replay(path, c.from, c.most, &out, nil)
		}
		if err != nil || to != c.to || out.String() != c.out || errs.String() != c.errs {
			t.Errorf("%s: %q, %q, to %d of %d, %v", name, out.String(), errs.String(), to, c.to, err)
		}
	}
	if _, err := Replay(path+".none", 0, 1, nil, nil); !os.IsNotExist(err) {
		t.Errorf("a log that is not there: %v", err)
	}
}
