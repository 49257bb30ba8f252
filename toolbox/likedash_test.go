// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// test and [ decide by the number of words what is an operator, so that what is compared may look like one.
func TestTests(t *testing.T) {
	const t2 = `t() { "$@" 2>/dev/null; echo $?; }; `
	likeDash(t, map[string][2]string{
		"words that look like operators": {`for x in -d ! "(" ")" -f = ""; do [ "$x" = "$x" ] && [ "$x" != y ] && [ ! "$x" = y ] || echo "not $x"; done; [ "!" = x ] || echo no`, "no\n"},
		"one word":                       {t2 + `t [ ]; t [ "" ]; t [ -f ]; t [ ! ]; t [ = ]; t [ ! "" ]; t test`, "1\n1\n0\n0\n0\n0\n1\n"},
		"two words":                      {t2 + `t [ -n "" ]; t [ -z "" ]; t [ a b ]; t [ ! a ]; t [ -q a ]; t [ -n ]`, "1\n0\n2\n1\n2\n0\n"},
		"numbers":                        {t2 + `t [ 08 -eq 8 ]; t [ a -eq 1 ]; t [ "" -eq 0 ]; t [ " 1 " -eq 1 ]; t [ -3 -lt 2 ]; t [ 2 -ge 3 ]`, "0\n2\n2\n0\n0\n1\n"},
		"texts":                          {t2 + `t [ a "<" b ]; t [ b ">" a ]; t [ b "<" a ]`, "0\n0\n1\n"},
		"longer ones":                    {t2 + `t [ "(" a = b -o c ")" -a ! d = e ]; t [ a -a "" -o "" ]; t [ a = b -o b = b -a c = d ]; t [ "(" a ]; t [ a = b c = d ]; t [ ! "(" a ")" ]`, "0\n1\n1\n2\n2\n1\n"},
		"no end":                         {t2 + `t [ a; t [`, "2\n2\n"},
		"files":                          {`: >f; mkdir d; ln -s f l; ln -s none b; echo x >g; chmod +x g; for o in e f d L h s p S c; do for p in f d l b g /dev/null none; do [ -$o $p ] && echo $o $p; done; done; [ d/../f -ef f ] && echo same`, "e f\ne d\ne l\ne g\ne /dev/null\nf f\nf l\nf g\nd d\nL l\nL b\nh l\nh b\ns d\ns g\nc /dev/null\nsame\n"},
		"descriptors":                    {`echo x | { [ -p /dev/stdin ] && echo pipe; }; : >f; exec 3<f; [ -f /dev/fd/3 ] && echo file; [ -t 1 ] || echo none`, "pipe\nfile\nnone\n"},
		"behind command":                 {`command [ ! = x ] || command test -d / && echo yes`, "yes\n"},
		"bash: options":                  {`set -e; [ -o errexit ] && [ ! -o noglob ] && test -v HOME && echo yes`, "yes\n"},
	})
}

// return without a status is that of the command before it.
func TestReturnKeepsTheStatus(t *testing.T) {
	likeDash(t, map[string][2]string{
		"of a failure":   {`f() { (exit 3); return; }; f; echo $?; g() { false || return; echo never; }; g; echo $?`, "3\n1\n"},
		"of success":     {`f() { false; true; return; }; false; f; echo $?; g() { return; }; (exit 4); g; echo $?`, "0\n4\n"},
		"behind command": {`f() { (exit 3); command return; }; f; echo $?; echo 'false; return; echo never' >s; . ./s; echo $?`, "3\n1\n"},
	})
}

// What stands behind a break or continue is not run, wherever in the loop that is.
func TestBreakWithinLists(t *testing.T) {
	likeDash(t, map[string][2]string{
		"braces":       {`for i in 1 2; do { break; echo more; }; done; for i in 1; do true && { continue; echo more; }; echo more; done; echo end`, "end\n"},
		"if and case":  {`for i in 1 2 3; do if [ $i -gt 1 ]; then if [ $i = 2 ]; then continue; fi; x=$i; case $i in 3) break;; esac; echo no; fi; echo at $i; done; echo $x $i`, "at 1\n3 3\n"},
		"two loops":    {`for i in 1 2; do { for j in a b; do { [ $j = b ] && break 2; }; echo $i$j; done; echo no; }; echo no; done; echo end`, "1a\nend\n"},
		"eval":         {`for i in 1 2; do eval 'break; echo more'; done; for i in 1 2; do eval 'if :; then continue; echo never; fi'; echo never; done; echo end`, "end\n"},
		"$? is kept":   {`for i in 1 2; do { (exit 3); [ $i = 2 ] && { break; }; echo $?; }; done`, "1\n"},
		"redirections": {`for i in 1 2; do if true; then [ $i = 2 ] && break; : >f$i; x=$(echo y$i); fi; done; ls; echo $x`, "f1\ny1\n"},
		"a function":   {`f() { while :; do if true; then n=$((n+1)); [ $n -gt 2 ] && break; echo $n; fi; done; }; n=0; f; f & wait`, "1\n2\n"},
		"with a trap":  {`trap 'echo T' USR1; for i in 1 2; do if :; then kill -USR1 $$; [ $i = 2 ] && break; echo $(echo $i); fi; done`, "T\n1\nT\n"},
	})
}

// With set -e, what fails in a condition counts for nothing, also in subshells and in functions that are called there; and
// a loop, an if, a case or braces do not fail because what they end with did not count.
func TestErrexit(t *testing.T) {
	likeDash(t, map[string][2]string{
		"a subshell before ||":     {`set -e; (false; echo x) || echo y; { (false; echo q); } && :; if (false; echo z); then echo t; fi; while (false; echo w); do break; done; (false; echo never) || :; sh -c 'set -e; (false; echo no)' || echo $?`, "x\nq\nz\nt\nw\nnever\n1\n"},
		"set -e within it":         {`set -e; (set -e; false; echo x) || echo y; case $- in *e*) echo e;; esac`, "x\ne\n"},
		"a part of a pipeline":     {`set -e; echo a | { false; echo b; } || :; { false; echo c; } | cat || :; f() { { false; echo d; } | cat; }; f && echo e; f`, "b\nc\nd\ne\n"},
		"what ! negates":           {`set -e; ! { false; echo a; }; ! (false; echo b); f() { false; echo c; }; ! f; if ! { false; echo d; }; then :; fi; echo $?`, "a\nb\nc\nd\n0\n"},
		"in a function":            {`set -e; f() { (false; echo in); echo after; }; if f; then echo y; fi; f || echo no; ! f; f & wait $! || echo bg`, "in\nafter\ny\nin\nafter\nin\nafter\nbg\n"},
		"made before":              {`f() { (false; echo in); [ a = b ] && echo x; }; set -e; f || echo no; if f; then echo y; fi; g() { f; echo g; }; g || :`, "in\nno\nin\nin\ng\n"},
		"not in a substitution":    {`set -e; x=$(false; echo u) || echo no; f() { x=$(g); echo "<$x>"; }; g() { (false; echo in); echo in; }; f && echo y`, "no\n<>\ny\n"},
		"in eval":                  {`set -e; eval '(false; echo x)' || echo n; eval 'for i in 1; do false && :; done; echo y'`, "x\ny\n"},
		"the end of a loop":        {`set -e; for i in 1 2; do [ $i = 1 ] && echo one; done; echo $?; for i in 1 2; do [ $i = 2 ] && { echo f; break; }; done; echo $?; for i in 1 2; do [ $i = 2 ] && continue; done; echo $?`, "one\n1\nf\n0\n0\n"},
		"of an if, a case, braces": {`set -e; if :; then false && :; fi; echo $?; if false; then :; elif :; then ! :; else :; fi; echo $?; case a in a) false && :;; esac; echo $?; { { false && :; }; }; echo $?; : && { (exit 3) && :; }; echo $?`, "1\n1\n1\n1\n3\n"},
		"and of a function":        {`sh -c 'set -e; f() { if :; then false && :; fi; }; f || echo no; f; echo never'; echo $?; sh -c 'set -e; (for i in 1; do false && :; done); echo never'; echo $?`, "no\n1\n1\n"},
		"from standard input":      {`printf 'f() { for i in 1; do false && :; done; }\nset -e\nfor i in 1; do false && :; done\nf || (false; echo x) || echo n\nf\necho never\n' | { sh -c 'sh'; echo $?; }`, "x\n1\n"},
		"the trap's $?":            {`printf 'trap "echo st \$?" EXIT\n(exit 4)\n' | { sh -c 'sh'; echo $?; }`, "st 4\n4\n"},
		"the trap on EXIT":         {`(trap 'echo bye $?' EXIT; set -e; for i in 1; do false && :; done; echo on; f() { (exit 3); }; f; echo never); echo $?`, "on\nbye 3\n3\n"},
	})
}

// The trap on ERR is run once for what fails, by whatever that is within, and not in functions, as in bash.
func TestTrapOnErr(t *testing.T) {
	const on = `trap 'echo E $?' ERR; `
	likeDash(t, map[string][2]string{
		"bash: at the end":        {`sh -c "trap 'echo E \$?' ERR; true; (exit 3)"; echo $?`, "E 3\n3\n"},
		"bash: within lists":      {on + `{ false; }; if :; then (exit 2); fi; for i in 1 2; do (exit $i); done; case a in a) (exit 4);; esac; while :; do false; break; done; echo $?`, "E 1\nE 2\nE 1\nE 2\nE 4\nE 1\n0\n"},
		"bash: what counts not":   {on + `{ false && true; }; if :; then false && true; fi; for i in 1; do [ a = b ] && echo x; done; false || (exit 7); echo $?`, "E 7\n7\n"},
		"bash: functions":         {on + `f() { false; true; }; f; g() { true; (exit 3); }; g; h() { g; return 4; }; h; (false; true); f | cat; echo end`, "E 3\nE 4\nend\n"},
		"bash: a function's own":  {`f() { trap 'echo E $?' ERR; false; true; }; f; (exit 2); echo end`, "E 1\nE 2\nend\n"},
		"bash: with set -e":       {`sh -c "set -e; trap 'echo E \$?' ERR; for i in 1 2; do [ \$i = 1 ] && echo one; done; echo ok; if :; then false && :; fi; false; echo never"; echo $?`, "one\nok\nE 1\n1\n"},
		"bash: shown and reset":   {`trap 'echo E' ERR; trap 'echo bye' EXIT; trap 'x=$(echo T)' TERM; trap -p ERR; trap; trap - ERR TERM; false; trap '' ERR; false; echo end`, "trap -- 'echo E' ERR\ntrap -- 'echo bye' EXIT\ntrap -- 'x=$(echo T)' TERM\ntrap -- 'echo E' ERR\nend\nbye\n"},
		"bash: with another trap": {`sh -c "trap 'echo T \$?' EXIT ERR; (exit 3)"; echo $?`, "T 3\nT 3\n3\n"},
	})
}

// What a subshell changes of its traps and its umask is its own.
func TestSubshellsOwn(t *testing.T) {
	likeDash(t, map[string][2]string{
		"traps taken away":       {`trap 'echo T' TERM; (trap - TERM); kill -TERM $$; (trap '' TERM); kill -TERM $$; x=$(trap - TERM); kill -TERM $$; trap - TERM | cat; kill -TERM $$; (trap - TERM; kill -TERM $$; echo in); echo end`, "T\nT\nT\nT\nin\nT\nend\n"},
		"traps set":              {`trap 'echo T' TERM; (trap 'echo U' TERM; echo in); kill -TERM $$; f() { trap 'echo U' TERM; }; (f); kill -TERM $$; x=$(f; (f)); kill -TERM $$`, "in\nT\nT\nT\n"},
		"ignored":                {`trap '' TERM; (trap 'echo U' TERM); kill -TERM $$; echo on`, "on\n"},
		"traps of pipelines":     {`{ trap 'echo bye' EXIT; echo a; } | cat; echo b | { trap 'echo bye' EXIT; cat; }; f() { trap 'echo f' EXIT; }; (f; echo in); x=$(f; echo s); echo $x; f | cat; echo end`, "a\nbye\nb\nbye\nin\nf\ns f\nf\nend\n"},
		"umask":                  {`umask 022; (umask 077; umask; : >f; sh -c umask); umask; x=$(umask 027; umask); echo $x; umask 077 | cat; umask; f() { umask 077; }; (f; exit 3); x=$(f); umask; : >g; stat -c %a f g; f; umask`, "0077\n0077\n0022\n0027\n0022\n0022\n600\n644\n0077\n"},
		"the last of a pipeline": {`umask 022; mkdir d; echo x | { cd d; pwd | tail -c 3; }; ls; echo a:b | { IFS=:; read x y; echo $y; }; x='a b'; set -- $x; echo $#; : | set -- c; echo $#; echo x | { exec >f; cat; }; echo out; echo a | { read x; umask 077; }; umask; n=0; printf '1\n2\n' | while read x; do set -- y; done; echo $1`, "/d\nd\nb\n2\n2\nout\n0022\na\n"},
		"the end of a script":    {`echo x | eval 'exit 3'; echo $?; echo 'exit 4' >s; echo x | . ./s; echo $?; echo a b | { read x y; echo $y; }`, "3\n4\nb\n"},
	})
}

// A substitution is what all that write to it have written: its last part waits for what runs beside it, and only for
// what still has its output.
func TestSubstitutionsOutput(t *testing.T) {
	const many = `n=0; while [ $n -lt 200 ]; do echo aaa >&2; n=$((n+1)); done`
	likeDash(t, map[string][2]string{
		"what runs beside":        {`x=$(sleep 600 & echo hi; kill $!); echo $x; x=$(sh -c 'read x; exit 3' </dev/null & wait $!; echo $?); echo $x`, "hi\n3\n"},
		"and writes later":        {`x=$({ until [ -e go ]; do sleep 0.01; done; echo late; } & echo early; >go); echo $x`, "early late\n"},
		"and writes elsewhere":    {`x=$({ exec sleep 600; } >/dev/null 2>&1 & echo hi $!); set -- $x; echo $1; kill $2; x=$(sh -c 'sleep 600 >/dev/null 2>&1 & echo $!'); kill $x && echo killed`, "hi\nkilled\n"},
		"two parts of a pipeline": {`x=$({ { ` + many + `; sh -c '` + many + `'; } | { ` + many + `; cat; sh -c '` + many + `'; }; } 2>&1); echo $x | tr -d ' ' | wc -c; { x=$({ ` + many + `; } | { ` + many + `; }); } 2>&1 | wc -l`, "2401\n400\n"},
		"two in the background":   {`x=$(for i in 1 2 3 4; do { ` + many + `; } & done 2>&1; wait); echo $x | tr -d ' ' | wc -c`, "2401\n"},
		"programs and ours":       {`f() { echo 1; sh -c 'echo 2'; echo 3; }; x=$(f; (f; (sh -c 'echo 4'); echo 5); f | cat); echo $x; x=$(exec 3>&1; f >&3; f); echo $x`, "1 2 3 1 2 3 4 5 1 2 3\n1 2 3 1 2 3\n"},
		"more than a pipe holds":  {`x=$(seq 1 20000); echo ${#x}; x=$(i=0; while [ $i -lt 20 ]; do seq 1 1000; echo $i; i=$((i+1)); done); echo ${#x}`, "108893\n77909\n"},
		"its status":              {`x=$(echo a; sh -c 'exit 3'); echo $x $?; x=$(echo b; exit 4); echo $x $?; set -e; x=$(false; echo c) || echo $?; x=$(trap 'echo bye' EXIT; exit 5) || echo $x $?`, "a 3\nb 4\n1\nbye 5\n"},
		"bash: a trap on ERR":     {`x=$(trap 'echo E' ERR; false; { (exit 3); }); echo $x $?`, "E E 3\n"},
	})
}

// exec with a program is the shell's end: the program has its id, its signals, its descriptors and its end, and the trap
// on EXIT is not run.
func TestExecReplaces(t *testing.T) {
	likeDash(t, map[string][2]string{
		"no trap on EXIT":   {`sh -c 'trap "echo bye" EXIT; exec sh -c "echo in; exit 3"; echo never'; echo $?; sh -c 'trap "echo bye" EXIT; f() { exec true; }; f; echo never'; echo $?`, "in\n3\n0\n"},
		"the same process":  {`sh -c 'echo $$; exec sh -c "echo \$\$"' | uniq | wc -l`, "1\n"},
		"what it is given":  {`sh -c 'mkdir d; cd d; exec 3>f; X=1 exec sh -c "pwd | tail -c 3; echo \$X; echo x >&3; cat f; echo e >&2" 2>&1'; sh -c 'exec sh -c "echo a; echo b >&2" >g 2>&1'; cat g`, "/d\n1\nx\ne\na\nb\n"},
		"bash: its input":   {`printf 'echo a\nexec cat\nrest\n' | sh -c 'sh'; printf 'a\nb\n' | sh -c 'read x; exec cat'`, "a\nrest\nb\n"},
		"its signals":       {`sh -c 'trap "echo T" TERM; exec sh -c "echo up >up; exec sleep 600"' & until [ -s up ]; do sleep 0.01; done; kill $!; wait $! 2>/dev/null; echo $?; sh -c 'trap "" INT; exec sh -c "kill -INT \$\$; echo alive"'`, "143\nalive\n"},
		"none there":        {`sh -c 'trap "echo bye" EXIT; exec ./none; echo never' 2>/dev/null; echo $?; : >f; sh -c 'trap "echo bye \$?" EXIT; exec ./f' 2>/dev/null; echo $?`, "bye\n127\nbye 126\n126\n"},
		"a script of words": {`echo 'echo script $0 $1' >s; chmod +x s; sh -c 'exec ./s a; echo never'; ./s b`, "script ./s a\nscript ./s b\n"},
		"not the shell's":   {`trap 'echo bye' EXIT; (trap 'echo sub' EXIT; exec sh -c 'exit 3'; echo never); echo $?; x=$(exec echo b; echo never); echo $x; echo c | exec cat; exec true | cat; { exec sh -c 'exit 5'; } & wait $!; echo $?; command exec sh -c 'echo end'`, "3\nb\nc\n5\nend\n"},
	})
}

// A shell on a terminal goes on where there is no program to replace it, and job control ends with it.
func TestExecOnATerminal(t *testing.T) {
	k := converse(t, t.TempDir(), "sh")
	k.expect("$ ")
	k.send("exec ./none; echo on\r")
	k.expect("\r\non\r\n$ ")
	k.send("exec sh -c 'echo in; read x; echo got $x; exit 4'\r")
	k.expect("\r\nin\r\n")
	k.send("line\r")
	k.expect("\r\ngot line\r\n")
	if code := k.end(); code != 4 {
		t.Errorf("exit code %d", code)
	}
}

// A signal whose trap is to run ends read, which fails then. It is sent until it has come while read waits.
func TestTrapEndsRead(t *testing.T) {
	const (
		silence = `{ until [ -e done ]; do sleep 0.01; done; } | `
		signals = `{ until [ -e done ]; do kill -USR1 $$; sleep 0.01; done; } 2>/dev/null & `
	)
	likeDash(t, map[string][2]string{
		"a line's":     {silence + `sh -c 'trap : USR1; ` + signals + `read x; echo $? "<$x>"; >done; wait'`, "1 <>\n"},
		"a loop's":     {silence + `sh -c 'trap "echo got >>got" USR1; ` + signals + `while read x; do echo never; done; >done; wait; uniq got'`, "got\n"},
		"with an exit": {silence + `{ sh -c 'trap "exit 4" USR1; ` + signals + `read x; echo never'; echo $?; >done; }`, "4\n"},
	})
}

// Words that are no arguments have no backslashes left, either: what is assigned, files, what a case is about.
func TestWords(t *testing.T) {
	likeDash(t, map[string][2]string{
		"assigned":        {`x=a\ b\$c; echo "$x"; x=\'\"a"b"\ c; echo "$x"; f() { local l=a\*b; echo "$l"; }; f; f & wait; export e=a\ b; sh -c 'echo "$e"'; p=q\ r sh -c 'echo "$p"'`, "a b$c\n'\"ab c\na*b\na*b\na b\nq r\n"},
		"files":           {`echo x >a\ b; cat <a\ b; echo y >>"a b"; exec 3>c\ d; echo z >&3; : >\*; ls; cat <<A >e\ f` + "\n$x\nA\n" + `cat e\ f`, "x\n*\na b\nc d\n\n"},
		"case":            {`case a\ b in "a b") echo 1;; esac; case a\*b in a\*b) echo 2;; esac`, "1\n2\n"},
		"defaults":        {`echo ${x:-a\ b} "${x:-a\ b}" ${x:-\$y} "${x:-\$y}" "${x:-\"q\"}" "${x:-a\}b}"; : ${z:=a\ b}; echo "$z"; x='a*b'; echo ${x%\**} "${x#a\*}"`, `a b a\ b $y $y "q" a}b` + "\na b\na b\n"},
		"single quotes":   {`a=1; echo "${x:-'$a'}" ${x:-'$a'} "${a:+'it'}" "${x:-a'b'c}" "${x:-~}"; cat <<A` + "\n${x:-'$a'} ${x:-\"q\"} \"${x:-y z}\"\nA\n" + `f() { echo "${x:-'$a'}" "${x:-\$a}" ${x:-\$a}; }; f & wait`, "'1' $a 'it' a'b'c ~\n'1' q \"y z\"\n'1' $a $a\n"},
		"~ behind colons": {`HOME=/h; p=/a:~/b:~; echo $p; p=$p:~/c; echo $p; echo a:~/b; export q=x:~; echo $q; r=~:~/x; echo $r; s=a~:b~/c; echo $s; t="a:~"; echo $t; u=a:"b":~/c; echo $u; v=\~:~; echo $v; PATH=$PATH:~/bin sh -c 'echo ${PATH##*:}'`, "/a:/h/b:/h\n/a:/h/b:/h:/h/c\na:~/b\nx:/h\n/h:/h/x\na~:b~/c\na:~\na:b:/h/c\n~:/h\n/h/bin\n"},
		"${10}":           {`set -- 1 2 3 4 5 6 7 8 9 'a b' k; echo "${10}" ${11} "<${12}>" "x${10}y" $10; x=${10}; echo "$x"; f() { printf '<%s>' "${10}" ${10}; echo; }; f "$@"; set -- a; f "$@"`, "a b k <> xa by 10\na b\n<a b><a><b>\n<>\n"},
		"${1+\"$@\"}":     {`set -- a 'b c'; printf '<%s>' ${1+"$@"}; set --; printf '<%s>' x ${1+"$@"}; echo`, "<a><b c><x>\n"},
		"bash: [[":        {`: >'a b'; [[ -f a\ b && "a b" = a\ b && a\ b = "a b" && a.c =~ a\.c ]] && echo yes`, "yes\n"},
	})
}

// Here-documents of any descriptor, with tabs only where they are at the beginning of a line; scripts and files that are
// descriptors; files that are opened to read and to write.
func TestHereDocumentsAndDescriptors(t *testing.T) {
	likeDash(t, map[string][2]string{
		"descriptor 3":      {`x='v "w"'; { cat <&3; cat <&4; } 3<<A 4<<'B'` + "\n$x \"q\" \\\"e\\\" \\$x \\\\ \\` \\a 'it' $(echo \"sub\") $((1+1))\ncon\\\ntinued\nA\n$x \"q\" \\$ \\\\ 'x\nB\n", "v \"w\" \"q\" \\\"e\\\" $x \\ ` \\a 'it' sub 2\ncontinued\n$x \"q\" \\$ \\\\ 'x\n"},
		"of exec":           {"x=y; exec 4<<A 5<<'B'\n$x\nA\n$x\nB\ncat <&4; cat <&5; cat <&4", "y\n$x\n"},
		"of a loop":         {"while read l <&7; do echo \"<$l>\"; done 7<<A\none\ntwo\nA\ncat 3<<A <&3\nA\n", "<one>\n<two>\n"},
		"of a function":     {"f() { cat <&8; } 8<<A\n$1\nA\nf arg; f arg & wait", "arg\narg\n"},
		"tabs":              {"x=y; cat <<-A\n\tone\n\t\ttwo\t$x\tz\n\t  three\n\tA\nf() { cat <&3; } 3<<-A\n\t\t$1\tb\n\tA\nf a; f a & wait", "one\ntwo\ty\tz\n  three\na\tb\na\tb\n"},
		". /dev/stdin":      {`echo 'echo in; x=5; (echo sub)' | { . /dev/stdin; echo $x; }; . /dev/stdin <<A` + "\ny=6\nA\n" + `echo $y; echo 'echo three' >s; . /dev/fd/3 3<s`, "in\nsub\n5\n6\nthree\n"},
		"</dev/stdin":       {`echo a | { cat </dev/stdin; }; echo b | { exec 3</dev/stdin; cat <&3; }`, "a\nb\n"},
		"to read and write": {`echo abc >f; cat 0<>f; cat <>f; echo x 1<>f; cat f; echo y >g; { read l; echo z >&0; } <>g; cat g; : <>new; ls; echo e 2<>h >&2; cat h; cat 2>/dev/null <>nodir/x || echo none`, "abc\nabc\nx\nc\ny\nz\nf\ng\nnew\ne\nnone\n"},
	})
}

// Whoever has waited for a process may ask once more how it ended.
func TestWaitsTwice(t *testing.T) {
	likeDash(t, map[string][2]string{
		"by its id": {`sh -c 'exit 7' & p=$!; wait $p; echo $?; wait $p; echo $?; wait 99999 2>/dev/null; echo $?`, "7\n7\n127\n"},
	})
}

// The builtins that the interpreter has in part only.
func TestBuiltinsInFull(t *testing.T) {
	const all = `while getopts ab:c o 2>/dev/null; do case $o in b) echo "b <$OPTARG>";; *) echo "$o";; esac; done; echo $OPTIND; `
	likeDash(t, map[string][2]string{
		"getopts":                {`set -- -a -b val -c x y; ` + all + `shift $((OPTIND-1)); echo "$@"; set -- -abval -cb '' -- -a; OPTIND=1; ` + all + `set -- -a - x; OPTIND=1; ` + all, "a\nb <val>\nc\n5\nx y\na\nb <val>\nc\nb <>\n5\na\n2\n"},
		"getopts, other words":   {`getopts abc x -abc; getopts abc x -abc; getopts abc x -a; echo $? $x $OPTIND; OPTIND=1; set -- -abc; getopts abc x; set --; getopts abc x; echo $? $x`, "1 ? 2\n1 ?\n"},
		"getopts, wrong":         {`set -- -x -b; ` + all + `OPTIND=1; while getopts :ab: o; do echo "$o $OPTARG"; done`, "?\n?\n3\n? x\n: b\n"},
		"getopts in functions":   {`f() { local OPTIND=1; while getopts n:v o; do case $o in n) echo n=$OPTARG;; v) echo v;; esac; done; shift $((OPTIND-1)); echo "rest $*"; }; f -v -n 3 a b; f -vn4 c; x=$(f -v d); echo $x`, "v\nn=3\nrest a b\nv\nn=4\nrest c\nv rest d\n"},
		"bash: printf -v":        {`printf -v v '%03d %s' 7 a\ b; echo "$v"`, "007 a b\n"},
		"read -p":                {`echo in | { read -p 'prompt ' x; echo $x; }`, "in\n"},
		"bash: trap in others":   {`trap 'echo bye' EXIT; trap : TERM; trap | cat; x=$(trap -p EXIT); echo "$x"`, "trap -- 'echo bye' EXIT\ntrap -- ':' TERM\ntrap -- 'echo bye' EXIT\nbye\n"},
		"bash: shift":            {`set -- a b; shift 3; echo $? $#; shift 2; echo $? $#; f() { shift; echo $#; }; f x y`, "shift: there are 2 parameters\n1 2\n0 0\n1\n"},
		"alias":                  {"alias ll='echo aliased' e='echo '\nll x\ne ll\nf() { ll y; }\nf\nunalias ll\nll 2>/dev/null || echo gone", "aliased x\necho aliased\naliased y\ngone\n"},
		"set shows variables":    {`foo='a  b'; set | grep '^foo='; export bar=1; export -p | grep bar= >/dev/null && echo exported; readonly baz=2; readonly | grep baz= >/dev/null && echo readonly; f() { export | grep -c foo=; }; f; echo $?`, "foo='a  b'\nexported\nreadonly\n0\n1\n"},
		"command -v and -V":      {`f() { :; }; command -v cd; command -v f; command -v if; command -V cd; command -V if; command -v nosuch || echo none`, "cd\nf\nif\ncd is a shell builtin\nif is a shell keyword\nnone\n"},
		"umask in letters":       {`umask 022; umask -S; umask u=rwx,g=,o=; umask; umask g+r; umask; umask a=rx; umask; umask x 2>/dev/null || echo no`, "u=rwx,g=rx,o=rx\n0077\n0037\n0222\nno\n"},
		"ulimit":                 {`(ulimit -n 64; ulimit -n); [ $(ulimit -n) -gt 64 ] && echo more; (ulimit -S -c 0; ulimit -c; ulimit -f unlimited; ulimit -f); ulimit -a | grep -c files; (ulimit -S -n 50; ulimit -S -n); ulimit -n x 2>/dev/null || echo no`, "64\nmore\n0\nunlimited\n1\n50\nno\n"},
		"set -x":                 {`exec 2>&1; set -x; echo a "b c" 'd$'; [ a = a ] && x=1; trap 'echo T' USR1; y=$(echo s); { :; } >f; set +x; echo end`, "+ echo a b c d$\na b c d$\n+ [ a = a ]\n+ x=1\n+ trap echo T USR1\n+ echo s\n+ y=s\n+ :\n+ set +x\nend\n"},
		"set -x shows to a file": {`(set -x; trap 'x=1' USR1; x=$(echo s); (echo in); for i in 1; do { [ $i = 2 ] && break; :; }; done; true & wait) 2>f >f2; grep -c shell: f; :`, "0\n"},
	})
}
