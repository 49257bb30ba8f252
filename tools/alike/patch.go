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

// How machine code of amd64 begins or looks, where it must be as it is known.
var (
	// looksAtStack is how a function begins that looks whether its stack has room: cmp rsp, [r14+0x10]
	looksAtStack = []byte{0x49, 0x3b, 0x66, 0x10}
	// threadOfGoroutine is mov rax, [r14+0x30]
	threadOfGoroutine = []byte{0x49, 0x8b, 0x46, 0x30}
)

const call, jump, jumpLength = 0xe8, 0xe9, 5

// patches are all that is written.
func patches(find functions) ([]write, error) {
	sysmon, err := find("runtime.sysmon")
	if err != nil {
		return nil, err
	}
	sleeps := []byte{
		0xb8, 0x22, 0x00, 0x00, 0x00, // mov eax, SYS_pause
		0x0f, 0x05, // syscall
		0xeb, 0xf7, // jmp to the beginning: a signal ends a pause
	}
	clock, err := find("internal/sync.runtime_nanotime")
	if err != nil {
		return nil, err
	}
	stands := []byte{
		0x31, 0xc0, // xor eax, eax
		0xc3, // ret
	}
	steal, err := find("runtime.stealWork")
	if err != nil {
		return nil, err
	}
	nothing := []byte{
		0x48, 0x89, 0xc1, // mov rcx, rax: the third result is the argument, now
		0x31, 0xc0, // xor eax, eax
		0x31, 0xdb, // xor ebx, ebx
		0x31, 0xff, // xor edi, edi
		0x31, 0xf6, // xor esi, esi
		0xc3, // ret
	}
	for _, f := range []function{sysmon, clock, steal} {
		if !bytes.HasPrefix(f.code, looksAtStack) {
			return nil, fmt.Errorf("function %s begins otherwise than the one that is known", f.name)
		}
	}
	// What is left of sysmon is room for code of our own.
	const room = 16
	frees, called, err := freesMain(find, sysmon.at+room)
	if err != nil {
		return nil, err
	}
	if len(sysmon.code) < room+len(frees) {
		return nil, fmt.Errorf("function %s has %d bytes only", sysmon.name, len(sysmon.code))
	}
	return []write{{sysmon.at, sleeps}, {clock.at, stands}, {steal.at, nothing}, {sysmon.at + room, frees}, called}, nil
}

// freesMain is code, to be put at an address, that unlocks the main goroutine from its thread and goes on with
// runtime.gcenable, and what has runtime.main call it instead of that.
func freesMain(find functions, at uint64) (code []byte, called write, err error) {
	main, err := find("runtime.main")
	if err != nil {
		return nil, write{}, err
	}
	gcenable, err := find("runtime.gcenable")
	if err != nil {
		return nil, write{}, err
	}
	unlock, err := find("runtime.unlockOSThread")
	if err != nil {
		return nil, write{}, err
	}
	unlocks := stores(unlock.code)
	if unlocks == nil {
		return nil, write{}, fmt.Errorf("function %s does something else than the one that is known", unlock.name)
	}
	place, err := callOf(main, gcenable.at)
	if err != nil {
		return nil, write{}, err
	}
	code = append(bytes.Clone(threadOfGoroutine), unlocks...)
	code = append(code, branch(jump, at+uint64(len(code)), gcenable.at)...)
	return code, write{place, branch(call, place, at)}, nil
}

// stores finds the two instructions by which a goroutine and its thread forget one another, which rax has: they have
// the places of those fields in them.
func stores(code []byte) []byte {
	const length = 11 // of each: 3 bytes, 4 of a place, 4 of the value 0
	for i := 0; i+2*length <= len(code); i++ {
		first, second := code[i:i+length], code[i+length:i+2*length]
		if bytes.HasPrefix(first, []byte{0x48, 0xc7, 0x80}) && bytes.HasSuffix(first, make([]byte, 4)) && // mov [rax+...], 0
			bytes.HasPrefix(second, []byte{0x49, 0xc7, 0x86}) && bytes.HasSuffix(second, make([]byte, 4)) && // mov [r14+...], 0
			bytes.Contains(code[:i], threadOfGoroutine) {
			return code[i : i+2*length]
		}
	}
	return nil
}

// callOf finds the one call of a function in another.
func callOf(f function, target uint64) (uint64, error) {
	var places []uint64
	for i := 0; i+jumpLength <= len(f.code); i++ {
		if at := f.at + uint64(i); bytes.Equal(f.code[i:i+jumpLength], branch(call, at, target)) {
			places = append(places, at)
		}
	}
	if len(places) != 1 {
		return 0, fmt.Errorf("function %s calls runtime.gcenable %d times, not once", f.name, len(places))
	}
	return places[0], nil
}

// branch is a call of, or a jump to, a target from an address.
func branch(instruction byte, at, target uint64) []byte {
	return binary.LittleEndian.AppendUint32([]byte{instruction}, uint32(target-at-jumpLength))
}

var errElsewhere = errors.New("it knows Go's runtime on Linux on amd64 only")
