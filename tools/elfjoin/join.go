// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

const (
	headerSize        = 64 // of the file
	programHeaderSize = 56
	sectionHeaderSize = 64
	// pageSize is the largest that either architecture has: what starts at a multiple of it can be mapped anywhere.
	pageSize = 64 << 10
)

// program is an ELF file of 64 bits that runs at fixed addresses, without a loader.
type program struct {
	data []byte
	elf  *elf.File
}

func parse(data []byte) (*program, error) {
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if f.Class != elf.ELFCLASS64 || f.Type != elf.ET_EXEC {
		return nil, fmt.Errorf("is %s %s, and not a program of 64 bits at fixed addresses", f.Class, f.Type)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			return nil, fmt.Errorf("is linked dynamically (%s)", p.Type)
		}
	}
	return &program{data, f}, nil
}

// loads are the segments that are mapped.
func (p *program) loads() []elf.ProgHeader {
	var out []elf.ProgHeader
	for _, s := range p.elf.Progs {
		if s.Type == elf.PT_LOAD {
			out = append(out, s.ProgHeader)
		}
	}
	return out
}

// join makes one file. The entry program is changed.
func join(main, short, entry *program) ([]byte, error) {
	for _, p := range []*program{short, entry} {
		if p.elf.Machine != main.elf.Machine || p.elf.ByteOrder != main.elf.ByteOrder {
			return nil, fmt.Errorf("programs for %s and %s cannot be joined", main.elf.Machine, p.elf.Machine)
		}
	}
	if err := apart(main, short, entry); err != nil {
		return nil, err
	}
	if err := entry.learn(main.elf.Entry, short.elf.Entry); err != nil {
		return nil, err
	}
	j := &joined{order: main.elf.ByteOrder, data: bytes.Clone(main.data)}
	for _, s := range main.elf.Progs {
		j.segments = append(j.segments, s.ProgHeader)
	}
	if err := j.takeSections(main.elf); err != nil {
		return nil, err
	}
	j.add(".short", short)
	j.add(".entry", entry)
	if err := j.writeSegments(main.elf); err != nil {
		return nil, err
	}
	j.writeSections()
	j.order.PutUint64(j.data[24:], entry.elf.Entry)
	return j.data, nil
}

// learn writes two entry points into the array called "programs".
func (p *program) learn(entries ...uint64) error {
	symbols, err := p.elf.Symbols()
	if err != nil {
		return fmt.Errorf("the entry program: %w", err)
	}
	for _, s := range symbols {
		if s.Name != "programs" || s.Size != uint64(8*len(entries)) {
			continue
		}
		for _, load := range p.loads() {
			if s.Value >= load.Vaddr && s.Value+s.Size <= load.Vaddr+load.Filesz {
				for i, entry := range entries {
					p.elf.ByteOrder.PutUint64(p.data[load.Off+s.Value-load.Vaddr+uint64(8*i):], entry)
				}
				return nil
			}
		}
	}
	return errors.New(`the entry program has no array "programs" of two addresses in its file`)
}

// joined is a file in the making.
type joined struct {
	order    binary.ByteOrder
	data     []byte
	segments []elf.ProgHeader
	sections []elf.Section64
	names    []byte // of the sections
	nameOf   int    // index of the section that holds them
}

// takeSections takes over main's.
func (j *joined) takeSections(main *elf.File) error {
	at, count, names := j.order.Uint64(j.data[40:]), int(j.order.Uint16(j.data[60:])), int(j.order.Uint16(j.data[62:]))
	if count == 0 || names >= count || at+uint64(count*sectionHeaderSize) > uint64(len(j.data)) {
		return errors.New("main has no table of sections")
	}
	j.sections, j.nameOf = make([]elf.Section64, count), names
	if _, err := binary.Decode(j.data[at:], j.order, j.sections); err != nil {
		return err
	}
	var err error
	j.names, err = main.Sections[names].Data()
	return err
}

// add puts a whole file behind what there is, with its segments, and a section for each: tools that write programs
// anew, such as strip, keep what is in a section.
func (j *joined) add(name string, p *program) {
	j.pad(pageSize)
	base := uint64(len(j.data))
	j.data = append(j.data, p.data...)
	for i, s := range p.loads() {
		s.Off += base
		j.segments = append(j.segments, s)
		section := elf.Section64{Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_ALLOC), Addr: s.Vaddr,
			Off: s.Off, Size: s.Filesz, Addralign: 1}
		if s.Flags&elf.PF_W != 0 {
			section.Flags |= uint64(elf.SHF_WRITE)
		}
		if s.Flags&elf.PF_X != 0 {
			section.Flags |= uint64(elf.SHF_EXECINSTR)
		}
		j.addSection(fmt.Sprintf("%s.%d", name, i), section)
		if s.Memsz > s.Filesz {
			section.Type = uint32(elf.SHT_NOBITS)
			section.Addr, section.Off, section.Size = s.Vaddr+s.Filesz, s.Off+s.Filesz, s.Memsz-s.Filesz
			j.addSection(fmt.Sprintf("%s.%d.bss", name, i), section)
		}
	}
}

func (j *joined) addSection(name string, s elf.Section64) {
	s.Name = uint32(len(j.names))
	j.names = append(append(j.names, name...), 0)
	j.sections = append(j.sections, s)
}

func (j *joined) pad(to int) {
	j.data = append(j.data, make([]byte, (to-len(j.data)%to)%to)...)
}

// apart fails if two programs would share a page.
func apart(programs ...*program) error {
	for i, p := range programs {
		from, to := p.span()
		for _, other := range programs[:i] {
			if begin, end := other.span(); from < end && begin < to {
				return fmt.Errorf("the programs overlap: one has the pages from %#x to %#x, another those from %#x to %#x", begin, end, from, to)
			}
		}
	}
	return nil
}

// span is where a program's pages begin and end.
func (p *program) span() (from, to uint64) {
	from = ^uint64(0)
	for _, s := range p.loads() {
		from, to = min(from, s.Vaddr), max(to, s.Vaddr+s.Memsz)
	}
	return from &^ (pageSize - 1), (to + pageSize - 1) &^ (pageSize - 1)
}

func byAddress(a, b elf.ProgHeader) int { return cmp.Compare(a.Vaddr, b.Vaddr) }

// writeSegments writes the table of segments where main's was, and where main's table of sections may have been, which
// moves. ELF wants what is mapped in the order of addresses.
func (j *joined) writeSegments(main *elf.File) error {
	room := uint64(len(j.data))
	for _, s := range main.Sections {
		if s.Offset > 0 && s.Size > 0 && s.Type != elf.SHT_NOBITS {
			room = min(room, s.Offset)
		}
	}
	size := uint64(len(j.segments) * programHeaderSize)
	if headerSize+size > room {
		return fmt.Errorf("main has room for %d bytes of program headers, not for %d", room-headerSize, size)
	}
	slices.SortStableFunc(j.segments, func(a, b elf.ProgHeader) int {
		if a.Type == elf.PT_LOAD && b.Type == elf.PT_LOAD {
			return byAddress(a, b)
		}
		return cmp.Compare(rank(a.Type), rank(b.Type))
	})
	clear(j.data[headerSize:room])
	at := headerSize
	for _, s := range j.segments {
		if s.Type == elf.PT_PHDR {
			s.Filesz, s.Memsz = size, size
		}
		raw := elf.Prog64{Type: uint32(s.Type), Flags: uint32(s.Flags), Off: s.Off, Vaddr: s.Vaddr, Paddr: s.Paddr,
			Filesz: s.Filesz, Memsz: s.Memsz, Align: s.Align}
		if _, err := binary.Encode(j.data[at:], j.order, raw); err != nil {
			return err
		}
		at += programHeaderSize
	}
	j.order.PutUint64(j.data[32:], headerSize)
	j.order.PutUint16(j.data[56:], uint16(len(j.segments)))
	return nil
}

// rank keeps the table's own segment before what is mapped, as ELF wants it, and the rest behind.
func rank(t elf.ProgType) int {
	switch t {
	case elf.PT_PHDR:
		return 0
	case elf.PT_LOAD:
		return 1
	}
	return 2
}

// writeSections writes the sections' names and their table at the end.
func (j *joined) writeSections() {
	s := &j.sections[j.nameOf]
	s.Off, s.Size = uint64(len(j.data)), uint64(len(j.names))
	j.data = append(j.data, j.names...)
	j.pad(8)
	j.order.PutUint64(j.data[40:], uint64(len(j.data)))
	j.order.PutUint16(j.data[60:], uint16(len(j.sections)))
	for _, s := range j.sections {
		j.data, _ = binary.Append(j.data, j.order, s) // fails for types of no fixed size only
	}
}
