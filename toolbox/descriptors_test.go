// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

// DC-01: descriptors from 3 on end with the command they were opened for, in whatever way it ends, and a subshell's are its own. What is wanted is
// what dash and bash print.
func TestShellDescriptorsEnd(t *testing.T) {
	for name, c := range map[string]struct{ line, want string }{
		"return":              {`exec 3>f; g() { { echo in >&3; return 4; } 3>o; }; g; echo $? >&3; cat o f`, "in\n4\n"},
		"return from two":     {`exec 3>f 4>g; h() { for i in 1 2; do { { return 4; } 3>o; } 4>p; done; }; h; echo a >&3; echo b >&4; cat o p f g`, "a\nb\n"},
		"return and closed":   {`exec 3>f; g() { { return; } 3>&-; }; g; echo a >&3; cat f`, "a\n"},
		"return in eval":      {`exec 3>f; g() { eval '{ return 4; } 3>o'; }; g; echo $? >&3; cat o f`, "4\n"},
		"return in source":    {`exec 3>f; echo '{ return 4; } 3>o' >s; . ./s; echo $? >&3; cat o f`, "4\n"},
		"return in a loop":    {`exec 3>f; g() { while :; do return 4; done 3>o; }; g; echo $? >&3; cat o f`, "4\n"},
		"return in case":      {`exec 3>f; g() { case x in x) return 4 ;; esac 3>o; }; g; echo $? >&3; cat o f`, "4\n"},
		"a function's own":    {`exec 3>f; g() { echo in >&3; return 4; } 3>o; g; echo $? >&3; cat o f`, "in\n4\n"},
		"break":               {`exec 3>f; for i in 1 2; do { echo $i >&3; break; } 3>o; done; echo out >&3; cat o f`, "1\nout\n"},
		"break from two":      {`exec 3>f; for i in 1 2; do for j in 1 2; do { break 2; } 3>o; done; done; echo out >&3; cat o f`, "out\n"},
		"break of a read":     {`printf 'a\nb\n' >f; exec 3</dev/null; while read x <&3; do echo $x; break; done 3<f; read y <&3; echo "$?$y"`, "a\n1\n"},
		"continue":            {`exec 3>f; for i in 1 2; do { echo $i >&3; continue; } 3>>o; done; echo out >&3; cat o f`, "1\n2\nout\n"},
		"a failure and -e":    {`exec 3>f; (set -e; { false; } 3>o; echo no); echo $? >&3; cat o f`, "1\n"},
		"one name twice":      {`exec 3>f; g() { { return; } 3>o 3>p; }; g; echo a >&3; cat f`, "a\n"},
		"as the program's":    {`exec 3>f; sh -c 'echo in >&3' 3>o; echo out >&3; cat o f`, "in\nout\n"},
		"in a substitution":   {`exec 3>f; x=$(g() { { echo in; return; } 1>&3; }; g; echo out); cat f; echo $x`, "in\nout\n"},
		"exec in one":         {`x=$(exec 3>&1; echo a >&3; echo b); echo $x; x=$(exec 3>&1 >/dev/null; echo a >&3; echo b); echo $x`, "a b\na\n"},
		"exec in one, status": {`x=$(exec 3>&1; echo a >&3; exit 4); echo $x $?; set -e; x=$(exec 3>&1; false) || echo $?`, "a 4\n1\n"},
		"exec in one, nested": {`x=$(exec 3>&1; y=$(echo q >&3; echo w); echo "y=$y"); echo $x; x=$(exec 3>&1; (exec 4>&3; sh -c 'echo t >&4')); echo $x`, "q y=w\nt\n"},
		"exec in one, eval":   {`x=$(eval 'exec 3>&1; echo a >&3'); echo "<$x>"; x=$(g() { exec 3>&1; }; g; echo b >&3); echo "<$x>"`, "<a>\n<b>\n"},
		"exec in one, apart":  {`exec 3>f; x=$(exec 3>&1; echo a >&3); echo $x >&3; cat f`, "a\n"},
		"a subshell's own":    {`exec 3>f; (exec 3>o; echo a >&3); echo b >&3; (exec 3>&-); echo c >&3; cat o f`, "a\nb\nc\n"},
		"a subshell's status": {`exec 3>f; false; (echo $?; exit 4); echo $?; set -e; false || (echo $?; true)`, "1\n4\n1\n"},
		"a pipeline's first":  {`{ exec 3>&1; echo a >&3; } | cat; (echo b >&3) 2>/dev/null || echo closed`, "a\nclosed\n"},
		"a pipeline's last":   {`yes | { exec 3<&0; head -n 1 <&3; }; (cat <&3) 2>/dev/null || echo closed`, "y\nclosed\n"},
		"a pipeline's all":    {`exec 3>f; for i in 1 2 3; do echo $i | { exec 3>g; tee /dev/fd/3 >h; cat g; } | { exec 4<&0; cat <&4; }; echo p$i >&3; done; cat f`, "1\n2\n3\np1\np2\np3\n"},
		"a recursion's":       {`exec 3>f; g() { [ $1 = 0 ] || { echo $1 >&3; echo | { cat >/dev/null; g $(($1-1)); }; }; }; g 3; cat f`, "3\n2\n1\n"},
		"in the background":   {`exec 3>f; g() { echo a | { cat; return; } 3>o; (echo b >&3) | cat; }; g & wait; g; cat f`, "a\na\nb\nb\n"},
		"return in subshells": {`g() { (return 3); echo $?; x=$(return 4); echo $?; echo | (return 5); echo $?; return 6 | true; (h() { return 7; }; h; echo $?); }; g`, "3\n4\n5\n7\n"},
		"exit in a pipeline":  {`echo a | while read x; do exit 4; done; echo $?; g() { echo a | { return 5; }; echo $?; }; g; echo b | read x; echo $x`, "4\n5\nb\n"},
		"names":               {`HOME=$PWD; echo a 3>~/f >&3; n='g h'; echo b 3>"$n" >&3; cat f "g h"; echo c 3>nope/x; echo $?`, "a\nb\nsh: open .*/nope/x: no such file or directory\n1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := command(t, t.TempDir(), "sh", "-c", c.line)
			cmd.Stdin = strings.NewReader("")
			out, _ := cmd.CombinedOutput()
			if !whole(c.want).Match(out) {
				t.Errorf("%s\n got %q\nwant %q", c.line, out, c.want)
			}
		})
	}
}
