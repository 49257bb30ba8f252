// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// known are functions as they look in a program.
func known() map[string]function {
	long := append([]byte(looksAtStack), make([]byte, 100)...)
	unlock := []byte("\x90" + threadOfGoroutine + "\x90" + forgetsGoroutine + "\x80\x01\x00\x00" + zero +
		forgetsThread + "\xd0\x00\x00\x00" + zero + "\xc3")
	all := map[string]function{
		"runtime.sysmon":                 {at: 0x1000, code: long},
		"runtime.stealWork":              {at: 0x2000, code: long},
		"internal/sync.runtime_nanotime": {at: 0x3000, code: long},
		"runtime.main":                   {at: 0x4000, code: append([]byte{0x90, 0x90}, branch(call, 0x4002, 0x5000)...)},
		"runtime.gcenable":               {at: 0x5000},
		"runtime.unlockOSThread":         {at: 0x6000, code: unlock},
	}
	for name, f := range all {
		f.name = name
		all[name] = f
	}
	return all
}

func in(all map[string]function) functions {
	return func(name string) (function, error) {
		f, there := all[name]
		if !there {
			return f, fmt.Errorf("it has no function %s", name)
		}
		return f, nil
	}
}

// The main function's call goes to code that unlocks its goroutine, and from there to where it went before.
func TestMainIsUnlocked(t *testing.T) {
	writes, err := patches(in(known()))
	if err != nil {
		t.Fatal(err)
	}
	at := map[uint64][]byte{}
	for _, w := range writes {
		at[w.at] = w.code
	}
	if got, want := at[0x4002], branch(call, 0x4002, 0x1010); !bytes.Equal(got, want) {
		t.Errorf("main calls % x, not % x", got, want)
	}
	code := known()["runtime.unlockOSThread"].code
	want := append([]byte(threadOfGoroutine), code[6:6+22]...)
	want = append(want, branch(jump, 0x1010+26, 0x5000)...)
	if got := at[0x1010]; !bytes.Equal(got, want) {
		t.Errorf("the code is % x, not % x", got, want)
	}
	if len(at) != 5 {
		t.Errorf("%d places are written", len(at))
	}
}

// Functions that do not look as they are known are refused by name.
func TestOtherFunctionsAreRefused(t *testing.T) {
	for name := range known() {
		if name != "runtime.gcenable" { // whose code nobody looks at
			all := known()
			all[name] = function{name: name, at: all[name].at, code: bytes.Repeat([]byte{0x90}, 200)}
			if _, err := patches(in(all)); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("another %s: %v", name, err)
			}
		}
		all := known()
		delete(all, name)
		if _, err := patches(in(all)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
	all := known()
	sysmon := all["runtime.sysmon"]
	sysmon.code = sysmon.code[:20]
	all["runtime.sysmon"] = sysmon
	if _, err := patches(in(all)); err == nil || !strings.Contains(err.Error(), "20 bytes") {
		t.Errorf("a short sysmon: %v", err)
	}
}
