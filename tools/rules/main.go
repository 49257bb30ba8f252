// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"github.com/wherryproject/wherry/internal/check/rules"
)

func main() {
	err := behaviour("docs/behaviour.md")
	if err == nil {
		err = attacks("docs/attacks.md")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "rules:", err)
		os.Exit(1)
	}
}

func behaviour(page string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	p, err := rules.Parse(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	found, err := rules.Scan(os.DirFS("."))
	if err != nil {
		return err
	}
	p.Update(found)
	return os.WriteFile(page, []byte(p.String()), 0o644)
}

func attacks(page string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	p, err := rules.ParseAttacks(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	found, err := rules.ScanAttacks(os.DirFS("."))
	if err != nil {
		return err
	}
	p.Update(found)
	return os.WriteFile(page, []byte(p.String()), 0o644)
}
