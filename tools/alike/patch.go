// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// write is what is written into a program's memory.
type write struct {
	at   uint64
	code []byte
}

// function is one of a program, by its symbol.
type function struct {
	name string
	at   uint64
	code []byte
}

// functions finds them by name.
type functions func(name string) (function, error)

// How machine code of amd64 looks where it must be as it is known.
const (
	// how a function begins that looks whether its stack has room: cmp rsp, [r14+0x10]
	looksAtStack      = "\x49\x3b\x66\x10"
	threadOfGoroutine = "\x49\x8b\x46\x30" // mov rax, [r14+0x30]
	forgetsGoroutine  = "\x48\xc7\x80"     // mov qword [rax+...], ...
	forgetsThread     = "\x49\xc7\x86"     // mov qword [r14+...], ...
	zero              = "\x00\x00\x00\x00"
)

const call, jump, jumpLength = 0xe8, 0xe9, 5

// replacements are functions that do something else from their beginning on.
func replacements() []function {
	return []function{
		{name: "runtime.sysmon", code: []byte{
			0xb8, 0x22, 0x00, 0x00, 0x00, // mov eax, SYS_pause
			0x0f, 0x05, // syscall
			0xeb, 0xf7, // jmp to the beginning: a signal ends a pause
		}},
		{name: "runtime.stealWork", code: []byte{
			0x48, 0x89, 0xc1, // mov rcx, rax: the third result is the argument, now
			0x31, 0xc0, // xor eax, eax: the others are zero
			0x31, 0xdb, // xor ebx, ebx
			0x31, 0xff, // xor edi, edi
			0x31, 0xf6, // xor esi, esi
			0xc3, // ret
		}},
		{name: "internal/sync.runtime_nanotime", code: []byte{
			0x31, 0xc0, // xor eax, eax
			0xc3, // ret
		}},
	}
}

// patches are all that is written.
func patches(find functions) ([]write, error) {
	var all []write
	for _, r := range replacements() {
		f, err := find(r.name)
		if err != nil {
			return nil, err
		}
		if !bytes.HasPrefix(f.code, []byte(looksAtStack)) || len(f.code) < len(r.code) {
			return nil, fmt.Errorf("function %s is not the one that is known", r.name)
		}
		all = append(all, write{f.at, r.code})
	}
	freed, err := freeMain(find)
	if err != nil {
		return nil, err
	}
	return append(all, freed...), nil
}

// freeMain has runtime.main unlock its goroutine from its thread before it calls runtime.gcenable, which starts the
// first goroutines. There is room for that code in runtime.sysmon, of which only the beginning is used any more.
func freeMain(find functions) ([]write, error) {
	var found []function
	for _, name := range []string{"runtime.sysmon", "runtime.main", "runtime.gcenable", "runtime.unlockOSThread"} {
		f, err := find(name)
		if err != nil {
			return nil, err
		}
		found = append(found, f)
	}
	sysmon, main, gcenable, unlock := found[0], found[1], found[2], found[3]
	unlocks := stores(unlock.code)
	if unlocks == nil {
		return nil, fmt.Errorf("function %s does not do what the one that is known does", unlock.name)
	}
	place, err := callOf(main, gcenable)
	if err != nil {
		return nil, err
	}
	const offset = 16
	at := sysmon.at + offset
	code := append([]byte(threadOfGoroutine), unlocks...)
	code = append(code, branch(jump, at+uint64(len(code)), gcenable.at)...)
	if len(sysmon.code) < offset+len(code) {
		return nil, fmt.Errorf("function %s has only %d bytes", sysmon.name, len(sysmon.code))
	}
	return []write{{at, code}, {place, branch(call, place, at)}}, nil
}

// stores finds the two instructions by which a thread, which rax has, and its goroutine forget one another: they have
// the places of those fields in them.
func stores(code []byte) []byte {
	const length = 11 // of each: 3 bytes of instruction, 4 of a place, 4 of the value 0
	begin := bytes.Index(code, []byte(threadOfGoroutine))
	if begin < 0 {
		return nil
	}
	for i := begin; i+2*length <= len(code); i++ {
		first, second := code[i:i+length], code[i+length:i+2*length]
		if bytes.HasPrefix(first, []byte(forgetsGoroutine)) && bytes.HasSuffix(first, []byte(zero)) &&
			bytes.HasPrefix(second, []byte(forgetsThread)) && bytes.HasSuffix(second, []byte(zero)) {
			return code[i : i+2*length]
		}
	}
	return nil
}

// callOf finds the one call of a function in another.
func callOf(f, target function) (uint64, error) {
	var places []uint64
	for i := 0; i+jumpLength <= len(f.code); i++ {
		if at := f.at + uint64(i); bytes.Equal(f.code[i:i+jumpLength], branch(call, at, target.at)) {
			places = append(places, at)
		}
	}
	if len(places) != 1 {
		return 0, fmt.Errorf("function %s calls %s %d times, not once", f.name, target.name, len(places))
	}
	return places[0], nil
}

// branch is a call of, or a jump to, a target from an address.
func branch(instruction byte, at, target uint64) []byte {
	return binary.LittleEndian.AppendUint32([]byte{instruction}, uint32(target-at-jumpLength))
}

var errElsewhere = errors.New("it knows Go's runtime on Linux on amd64 only")
