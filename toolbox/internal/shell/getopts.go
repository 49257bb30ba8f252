// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"fmt"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// optionPlace is the variable that has where getopts is within letters that stand together, as in -abc: the value of
// OPTIND, a colon, and how many letters it has read.
const optionPlace = "_option_place"

// option is what getopts has found.
type option struct {
	letter, value string
	valued        bool // OPTARG is set
	index, within int  // where it goes on
	over          bool
}

// getopts is the command. The interpreter's knows no --, no empty value, and takes an option whose value is missing for
// a colon where it is to be a question mark.
func (s *session) getopts(hc interp.HandlerContext, args []string) []string {
	if len(args) < 2 || !syntax.ValidName(args[1]) {
		fmt.Fprintln(hc.Stderr, "getopts: needs the letters and a variable's name")
		return []string{inner + "status", "2"}
	}
	letters, name, words := args[0], args[1], args[2:]
	if len(words) == 0 {
		words = s.runnerOf(hc).Params
	}
	index, _ := strconv.Atoi(hc.Env.Get("OPTIND").String())
	o := option{index: max(index, 1)}
	if before, after, _ := strings.Cut(hc.Env.Get(optionPlace).String(), ":"); before == strconv.Itoa(o.index) {
		o.within, _ = strconv.Atoi(after) // written by the shell itself
	}
	letters, silent := strings.CutPrefix(letters, ":")
	if wrong := o.next(letters, words, silent); wrong != "" && !silent {
		fmt.Fprintln(hc.Stderr, "getopts:", wrong)
	}
	code := fmt.Sprintf("%s=%s; OPTIND=%d; %s=%d:%d", name, quote([]string{o.letter}), o.index, optionPlace, o.index,
		o.within)
	switch {
	case o.valued:
		code += "; OPTARG=" + quote([]string{o.value})
	case hc.Env.Get("OPTARG").IsSet():
		code += "; unset OPTARG"
	}
	if o.over {
		code += "; " + inner + "status 1"
	}
	return []string{"eval", code}
}

// next finds the next option, and says what is wrong with it.
func (o *option) next(letters string, words []string, silent bool) (wrong string) {
	o.letter = "?"
	switch { // the words may be others than the last time
	case o.index > len(words) || o.within < 0:
		o.within = 0
	case o.within > 0 && o.within >= len(words[o.index-1]):
		o.index, o.within = o.index+1, 0
	}
	if o.within == 0 {
		if o.index > len(words) || len(words[o.index-1]) < 2 || words[o.index-1][0] != '-' {
			o.over = true
			return ""
		}
		if words[o.index-1] == "--" {
			o.index++
			o.over = true
			return ""
		}
		o.within = 1
	}
	word := words[o.index-1]
	letter, rest := word[o.within:o.within+1], word[o.within+1:]
	if o.within++; rest == "" {
		o.index, o.within = o.index+1, 0
	}
	at := strings.Index(letters, letter)
	switch {
	case at < 0 || letter == ":":
		o.value, o.valued = letter, silent
		return fmt.Sprintf("there is no option -%s", letter)
	case !strings.HasPrefix(letters[at+1:], ":"):
		o.letter = letter
	case rest != "":
		o.letter, o.value, o.valued = letter, rest, true
		o.index, o.within = o.index+1, 0
	case o.index <= len(words):
		o.letter, o.value, o.valued = letter, words[o.index-1], true
		o.index++
	default:
		if o.value, o.valued = letter, silent; silent {
			o.letter = ":"
		}
		return fmt.Sprintf("-%s needs a value", letter)
	}
	return ""
}
