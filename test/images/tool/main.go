// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// behaviour is one thing that the tool can do. Its error is printed and ends the tool with code 1.
type behaviour struct {
	usage string
	run   func(args []string) error
}

func behaviours() map[string]behaviour {
	return map[string]behaviour{
		"act":      {"act [FLAGS] JOURNAL NAME: play a container and keep a journal of it; see act.go", act},
		"alloc":    {"alloc MIB: take that much memory, touch it, sleep", alloc},
		"api":      {"api PATH: GET PATH from $API with the pod's service account; prints the code and the body", api},
		"cat":      {"cat FILE...: print files", catFiles},
		"children": {"children N: start N processes that sleep, and sleep", children},
		"env":      {"env [NAME...]: print the environment, sorted, or some of it", printEnv},
		"exit":     {"exit CODE [AFTER]: end with CODE, after a duration", exit},
		"healthy":  {"healthy [FLAGS] JOURNAL NAME: end with 1 if the actor NAME is sick", healthy},
		"http":     {"http [ADDR]: serve HTTP (default :8080); see http.go for its paths", serveHTTP},
		"lines":    {"lines N [EVERY]: log N numbered lines", lines},
		"once":     {"once FILE CODE: end with CODE the first time (FILE is then made), with 0 afterwards", once},
		"probe":    {"probe FOLDER: try what no container may do to the machine or to FOLDER, and say what came of each", probe},
		"sleep":    {"sleep [FOR]: say so and sleep, until SIGTERM, which ends it with 0", sleep},
		"storm":    {"storm LINK: move the folder LINK to LINK.d, put a long chain of links in its place, rename without end", storm},
		"stubborn": {"stubborn: ignore SIGTERM and SIGINT, saying so", stubborn},
		"swap":     {"swap A B: exchange two files without end", swap},
		"tcp":      {"tcp ADDR: send back what comes, with a greeting first", serveTCP},
		"tell":     {"tell [FLAGS] JOURNAL NAME WHAT: write WHAT down in the actor's journal, as a hook", tell},
		"udp":      {"udp ADDR: send packets back", serveUDP},
		"watch":    {"watch FOLDER: print its files when it starts and when they change", watchFolder},
		"write":    {"write FILE TEXT [CODE]: write a file, end with CODE", write},
	}
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "tool:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	all := behaviours()
	if len(args) > 0 {
		if b, ok := all[args[0]]; ok {
			return b.run(args[1:])
		}
	}
	var usages []string
	for _, b := range all {
		usages = append(usages, b.usage)
	}
	slices.Sort(usages)
	return fmt.Errorf("what to do?\n  %s", strings.Join(usages, "\n  "))
}
