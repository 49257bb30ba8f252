// SPDX-License-Identifier: Apache-2.0

package cmdline

import (
	"bytes"
	"errors"
	"testing"
)

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("the pipe is cut") }

// A table has its columns under one another, dashes for what there is not; without rows it is a word beside the output.
// That it could not be written is an error.
func TestTable(t *testing.T) {
	var out, errs bytes.Buffer
	table := Table{Head: []string{"NAME", "AGE"}, None: "no things found"}
	if err := table.Print(Terminal{Out: &out, Err: &errs}); err != nil || out.Len() > 0 ||
		errs.String() != "no things found\n" {
		t.Errorf("%q, %q, %v", out.String(), errs.String(), err)
	}
	table.Add("a-long-name", "")
	table.Add("b", "3s")
	errs.Reset()
	want := "NAME          AGE\na-long-name   -\nb             3s\n"
	if err := table.Print(Terminal{Out: &out, Err: &errs}); err != nil || out.String() != want || errs.Len() > 0 {
		t.Errorf("%q, %q, %v", out.String(), errs.String(), err)
	}
	if err := table.Print(Terminal{Out: broken{}, Err: &errs}); err == nil {
		t.Error("a table that nobody got is no error")
	}
}
