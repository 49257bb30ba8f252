// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What the commands do, as lines of the shell: input, line, what is printed (both streams), exit code if it is not 0.
func TestCommands(t *testing.T) {
	for _, c := range []struct {
		name, stdin, line, want string
		code                    int
	}{
		// The shell
		{"pipes", "", `echo a b | tr a-z A-Z | cat`, "A B\n", 0},
		{"status", "", `false; echo $?; (exit 7); echo $?; nothing; echo $?`, "1\n7\nsh: nothing: command not found\n127\n", 0},
		{"signal status", "", `sh -c 'kill -9 $$'; echo $?`, "killed\n137\n", 0},
		{"redirects", "", `echo one >f; echo two >>f; cat <f; cat nope 2>/dev/null || echo none`, "one\ntwo\nnone\n", 0},
		{"here document", "", "cat <<E\nx $((1+2))\nE", "x 3\n", 0},
		{"globs", "", `touch a.c b.c 'c d.c'; for f in *.c; do echo "<$f>"; done; echo *.none`, "<a.c>\n<b.c>\n<c d.c>\n*.none\n", 0},
		{"export", "", `export A=1; B=2; env | grep -E '^[AB]='; C=3 sh -c 'echo $C$A$B'`, "A=1\n31\n", 0},
		{"cd", "", `mkdir -p x/y; cd x/y; basename "$PWD"; cd ..; basename "$(pwd)"; cd - >/dev/null; basename "$PWD"`, "y\nx\ny\n", 0},
		{"functions", "", `f() { echo "$1-$#"; return 3; }; f a b; echo $?`, "a-2\n3\n", 0},
		{"input is shared", "first\nsecond\n", `read x; echo "<$x>"; cat`, "<first>\nsecond\n", 0},
		{"without PATH", "", `PATH=/nonexistent; seq 2 | head -n 1`, "1\n", 0},
		{"exec", "", `exec echo gone; echo never`, "gone\n", 0},
		{"script", "", `printf 'echo "$0 $1"; exit 4\n' >s; sh s arg`, "s arg\n", 4},
		{"script without its shell", "", `printf 'echo "ran $1"\n' >s; chmod +x s; ./s arg`, "ran arg\n", 0},
		{"-e", "", `sh -ec 'false; echo never'`, "", 1},
		{"umask", "", `umask 077; touch f; stat -c %a f; umask`, "600\n0077\n", 0},
		{"background", "", `{ sleep 0.01; echo later; } & wait; echo done`, "later\ndone\n", 0},
		{"test", "", `[ -d / ] && [ 2 -gt 1 ] && test -n x && echo yes; test a = b`, "yes\n", 1},
		{"syntax", "", `sh -c 'if'`, "sh: sh:1:1: `if` must be followed by a statement list\n", 2},
		// Text
		{"grep", "one\ntwo\nthree\n", `grep -n t; echo $?`, "2:two\n3:three\n0\n", 0},
		{"grep -ivcx", "A\na\nab\n", `cat >f; grep -i a f | wc -l; grep -vc b f; grep -x a f; grep -q zz f`, "3\n2\na\n", 1},
		{"grep -o -E", "a1b22c333\n", `grep -oE '[0-9]+'`, "1\n22\n333\n", 0},
		{"grep basic", "a+b\na(b\n", `grep 'a+b'; echo 'xx' | grep -c 'x\{2\}'; echo ab | grep -o '\(a\)b'`, "a+b\n1\nab\n", 0},
		{"grep -r", "", `mkdir d; echo hit >d/x; echo no >d/y; grep -rn hit d; grep -rl hit d; grep -L hit d/x d/y; grep -h hit d/x d/y`,
			"d/x:1:hit\nd/x\nd/y\nhit\n", 0},
		{"grep context", "1\n2\n3\n4\n5\n6\n7\n", `grep -n -A1 -B1 -e 2 -e 6`, "1-1\n2:2\n3-3\n--\n5-5\n6:6\n7-7\n", 0},
		{"grep -w", "foo foobar\nfoobar\n", `grep -w foo`, "foo foobar\n", 0},
		{"grep binary", "a\x00b\n", `grep b; grep -a b | wc -c`, "Binary file (standard input) matches\n0\n", 0},
		{"grep of nothing", "", `grep x /nope`, "grep: open /nope: no such file or directory\n", 2},
		{"sed s", "aaa\nbab\n", `sed 's/a/X/2;s/b\(a\)/[\1&]/'`, "aXa\n[aba]b\n", 0},
		{"sed p and d", "1\n2\n3\n4\n5\n", `cat >f; sed -n '2,3p' f; sed '2,$d' f; sed -n '/4/,$p' f; sed '1~2d' f; sed '$!d' f`,
			"2\n3\n1\n4\n5\n2\n4\n5\n", 0},
		{"sed text", "a\nb\n", `sed -e '1i top' -e '1a after' -e '2c other'`, "top\na\nafter\nother\n", 0},
		{"sed hold", "a\nb\nc\n", `sed -n '1!G;h;$p'`, "c\nb\na\n", 0},
		{"sed join", "a\nb\nc\n", `sed ':l;N;$!bl;s/\n/,/g'`, "a,b,c\n", 0},
		{"sed -E -i", "", `echo 'k = v' >f; sed -i.old -E 's#(\w+) = (\w+)#\2=\1#' f; cat f f.old`, "v=k\nk = v\n", 0},
		{"sed y and =", "abc\n", `sed -n 'y/abc/xyz/;=;p'`, "1\nxyz\n", 0},
		{"sed q", "1\n2\n3\n", `sed 2q; echo`, "1\n2\n\n", 0},
		{"sed w", "x\ny\n", `sed -n '/x/w out'; cat out`, "x\n", 0},
		{"sed block", "a\nb\n", `sed '/a/{s/a/1/;s/1/2/}'`, "2\nb\n", 0},
		{"sed bad", "", `sed 's/a/b'`, "sed: a / is missing (see --help)\n", 2},
		{"awk", "a 1\nb 2\n", `cat >f; awk '{ s += $2 } END { print s }' f; awk -F: -v n=2 '{ print $n }' /dev/fd/0 <<E
x:y
E
awk 'NR == 2 { print $1; exit 3 }' f; echo $?`, "3\ny\nb\n3\n", 0},
		{"awk text", "k=v,w\n", `awk -F'[=,]' 'BEGIN { OFS = "-" } { $1 = toupper($1); print; printf "%05.1f|%s\n", 3, substr($2, 1, 1) } /k/ { gsub("v", "x"); print }'`, "K-v-w\n003.0|v\n", 0},
		{"awk runs and reads", "", `awk 'BEGIN { system("echo ran"); "echo read" | getline x; print x; print "z\na" | "sort"; close("sort"); print ENVIRON["HOME"] }'`, "ran\nread\na\nz\n/nonexistent\n", 0},
		{"awk program file", "", `echo 'BEGIN { print ARGC, ARGV[1] }' >p; awk -f p a=1; awk 'BEGIN {'; echo $?`, "2 a=1\nawk: parse error at 1:8: expected } instead of EOF\n2\n", 0},
		{"diff", "", `seq 9 >a; sed -e 2d -e 's/5/five/' a >b; diff a b; echo $?; diff a a; echo $?; diff -q a b; diff a none`,
			"--- a\n+++ b\n@@ -1,8 +1,7 @@\n 1\n-2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n1\n0\nFiles a and b differ\ndiff: open none: no such file or directory\n", 2},
		{"diff ends", "", `printf 'a\nb' >x; printf 'a\nc\n' >y; : >z; diff -U 0 x y; diff z y`,
			"--- x\n+++ y\n@@ -2 +2 @@\n-b\n\\ No newline at end of file\n+c\n--- z\n+++ y\n@@ -0,0 +1,2 @@\n+a\n+c\n", 1},
		{"diff does not count", "", `printf 'A  b\n\n' >x; printf 'a b\n' >y; diff -ibB x y && diff -iwBs x y; printf '\000' >b; diff b y`, "Binary files b and y differ\n", 1},
		{"diff -r", "", `mkdir -p p/d q/d; echo 1 >p/d/f; echo 2 >q/d/f; echo 3 >p/only; diff -r p q; diff -qrN p q; diff p q`,
			"--- p/d/f\n+++ q/d/f\n@@ -1 +1 @@\n-1\n+2\nOnly in p: only\nFiles p/d/f and q/d/f differ\nFiles p/only and q/only differ\nCommon subdirectories: p/d and q/d\nOnly in p: only\n", 1},
		{"sort", "b 10\na 9\nc 9\n", `cat >f; sort f; sort -k2,2n -k1,1r f; sort -k2n -u f`, "a 9\nb 10\nc 9\nc 9\na 9\nb 10\na 9\nb 10\n", 0},
		{"sort -h -V -t", "1M\n2K\n", `sort -h; printf '1.10\n1.9\n' | sort -V; printf 'x:2\ny:1\n' | sort -t: -k2`, "2K\n1M\n1.9\n1.10\ny:1\nx:2\n", 0},
		{"uniq", "a\na\nb\nA\n", `cat >f; uniq -c f; uniq -d f; sort -f f | uniq -i | wc -l`, "      2 a\n      1 b\n      1 A\na\n2\n", 0},
		{"cut", "a:b:c\nnone\n", `cat >f; cut -d: -f1,3 f; cut -c2- f; cut -sd: -f2 f`, "a:c\nnone\n:b:c\none\nb\n", 0},
		{"tr", "hello  world\n", `cat >f; tr -d l <f; tr -s ' ' <f; tr '[:lower:]' '[:upper:]' <f; tr -cd 'o\n' <f`, "heo  word\nhello world\nHELLO  WORLD\noo\n", 0},
		{"head and tail", "", `seq 20 >f; head -n 2 f; head -n -18 f; tail -n 2 f; tail -n +19 f; head -c 3 f; tail -c 3 f; seq 5 | tail -2; head -1 f`,
			"1\n2\n1\n2\n19\n20\n19\n20\n1\n220\n4\n5\n1\n", 0},
		{"wc", "one two\nthree", `cat >f; wc f; wc -l <f; wc -w f; wc -c <f`, "        1         3        13 f\n1\n3 f\n13\n", 0},
		{"tac rev nl", "ab\ncd\n", `cat >f; tac f; rev f; nl f`, "cd\nab\nba\ndc\n     1\tab\n     2\tcd\n", 0},
		{"sums", "", `printf x >f; sha256sum f >s; md5sum f; sha256sum -c s; echo y >f; sha256sum -c s 2>/dev/null`,
			"9dd4e461268c8034f5c8564e155c67a6  f\nf: OK\nf: FAILED\n", 1},
		{"base64", "", `printf 'hello?>' | base64; printf aGVsbG8/Pg== | base64 -d`, "aGVsbG8/Pg==\nhello?>", 0},
		{"xxd", "", `printf 'AB\001' | xxd; printf 'AB\001' | xxd -p; printf '4142' | xxd -r -p`, "00000000: 4142 01                                  AB.\n414201\nAB", 0},
		{"hexdump", "", `printf 'AB' | hexdump -C`, "00000000  41 42                                             |AB|\n00000002\n", 0},
		{"gzip", "", `seq 100 >f; gzip f; ls; zcat f.gz | tail -n 1; gunzip f.gz; ls; gzip -c f | gzip -dc | cmp - f`, "f.gz\n100\nf\n", 0},
		{"seq", "", `seq 3 -1 1; seq -s, 0 0.5 1; seq -w 9 10`, "3\n2\n1\n0.0,0.5,1.0\n09\n10\n", 0},
		{"tee", "x\n", `tee a b; cat a b; echo y | tee -a a >/dev/null; cat a`, "x\nx\nx\nx\ny\n", 0},
		{"cat -A", "a\tb\n", `cat -A; echo x | cat -n`, "a^Ib$\n     1\tx\n", 0},
		{"strings", "", `printf 'ab\000hello\001x' | strings`, "hello\n", 0},
		{"cmp", "", `echo a >x; echo b >y; cmp x x && cmp x y`, "x y differ: char 1, line 1\n", 1},
		// Files
		{"ls", "", `mkdir d; touch d/b d/.h; ln -s b d/a; ls d; ls -A d; ls -1F d; ls -d d`, "a\nb\n.h\na\nb\na@\nb\nd\n", 0},
		{"ls order", "", `touch -d @3 a; touch -d @1 b; touch -d @2 c; ls -t; ls -tr; printf xx >b; ls -S | head -n 1`, "a\nc\nb\nb\nc\na\nb\n", 0},
		{"ls of nothing", "", `ls nope`, "ls: lstat nope: no such file or directory\n", 1},
		{"cp", "", `mkdir -p s/d; echo x >s/d/f; ln -s f s/d/l; cp s t 2>&1; cp -r s t; cat t/d/f; readlink t/d/l; cp s/d/f g; cp s/d/f t; ls t`,
			"cp: s is a folder: use -r\nx\nf\nd\nf\n", 0},
		{"cp -a", "", `echo x >f; chmod 640 f; touch -d @5 f; ln f g; mkdir o; cp -a f g o; stat -c '%a %Y %h' o/f`, "640 5 2\n", 0},
		{"cp into itself", "", `mkdir d; cp -r d d/e`, "cp: d cannot be copied into itself\n", 1},
		{"mv", "", `echo x >a; mkdir d; mv a d; ls d; mv d/a b; cat b; mv nope c`, "a\nx\nmv: rename nope c: no such file or directory\n", 1},
		{"rm", "", `mkdir -p d/e; touch f d/g; rm d; rm f; rm -r d; ls; rm -f nope; rm nope`, "rm: d is a folder: use -r\nrm: lstat nope: no such file or directory\n", 1},
		{"mkdir", "", `mkdir -p a/b; mkdir -m 700 c; stat -c %a c; rmdir -p a/b; ls`, "700\nc\n", 0},
		{"ln", "", `echo x >f; ln -s f l; ln -sf g l; readlink l; ln f h; stat -c %h f; readlink f`, "g\n2\n", 1},
		{"chmod", "", `touch f; chmod 644 f; chmod u+x,g-r f; stat -c %A f; chmod a=r f; stat -c %a f; chmod -r f; stat -c %a f`, "-rwx---r--\n444\n0\n", 0},
		{"touch", "", `touch -d '2020-01-02 03:04:05' f; stat -c %Y f; touch -r f g; stat -c %Y g; touch -c h; ls`, "1577934245\n1577934245\nf\ng\n", 0},
		{"find", "", `mkdir -p a/b; touch a/x.go a/b/y.go a/b/z; find a -name '*.go' | sort; find a -type d -mindepth 1; find . -maxdepth 1 | sort`,
			"a/b/y.go\na/x.go\na/b\n.\n./a\n", 0},
		{"find together", "", `touch a b c; find . -type f ! -name a -o -name a -print | wc -l; find . \( -name a -o -name b \) -exec echo {} \; | sort; find . -type f -exec echo {} + | wc -w`,
			"1\n./a\n./b\n3\n", 0},
		{"find -delete -size -perm", "", `printf abc >a; : >b; chmod 600 a; chmod 755 b; find . -size 3c; find . -empty -type f; find . -perm 600; find . -perm -111 -type f; find . -name b -delete; ls`,
			"./a\n./b\n./a\n./b\na\n", 0},
		{"find bad", "", `find . -nope`, "find: unknown test or action -nope (see --help)\n", 2},
		{"tar", "", `mkdir d; echo x >d/f; ln -s f d/l; tar czf a.tgz d; tar tf a.tgz; rm -r d; tar xzf a.tgz; cat d/l; mkdir o; tar -xf a.tgz -C o --strip-components 1 d/f; ls o; tar -xOf a.tgz d/f`,
			"d/\nd/f\nd/l\nx\nf\nx\n", 0},
		{"tar as kubectl cp calls it", "", `mkdir o p; umask 077; echo x >f; chmod 666 f; touch -d @5 f; sh -c 'tar cf - f | tail -c+1' >a; tar -xmf - -C o <a; test o/f -nt f && stat -c %a o/f
			tar --no-same-permissions --no-same-owner -xf - -C p <a; stat -c '%a %Y' p/f`, "666\n600 5\n", 0},
		{"tar of nothing", "", `echo x >f; tar cf a f; tar xf a nope`, "tar: nope is not in the archive\n", 1},
		{"du", "", `mkdir d; head -c 10000 /dev/zero >d/f; du -s --apparent-size d | cut -f2; du -a d | wc -l`, "d\n2\n", 0},
		{"truncate", "", `truncate -s 1M f; stat -c %s f; truncate -s -1K f; stat -c %s f`, "1048576\n1047552\n", 0},
		{"file", "", `echo hi >t; printf '#!/bin/sh\n' >s; file t s`, "t: text\ns: script for /bin/sh\n", 0},
		{"readlink -f", "", `mkdir d; ln -s d l; basename "$(readlink -f l/new)"; basename "$(realpath l)"`, "new\nd\n", 0},
		{"basename dirname", "", `basename /a/b.c .c; dirname /a/b; dirname a; dirname /`, "b\n/a\n.\n/\n", 0},
		{"mktemp", "", `f=$(mktemp -p .); test -f $f; d=$(mktemp -d ./x.XXXX); test -d $d && echo ok`, "ok\n", 0},
		// JSON
		{"jq", `{"b":[1,{"c":"x y"}],"a":null}`, `cat >f; jq . f; jq -c .b f; jq -r '.b[1].c' f; jq -c --indent 1 'keys' f`,
			"{\n  \"a\": null,\n  \"b\": [\n    1,\n    {\n      \"c\": \"x y\"\n    }\n  ]\n}\n[1,{\"c\":\"x y\"}]\nx y\n[\"a\",\"b\"]\n", 0},
		{"jq's inputs", "1 2\n3", `cat >f; jq -s add f; jq -n '[inputs] | length' f; jq -c '[., input]' f f; jq -R . f; jq -Rs . f`, "6\n3\n[1,2]\n[3,1]\n[2,3]\n\"1 2\"\n\"3\"\n\"1 2\\n3\\n\"\n", 0},
		{"jq's variables", "", `echo 5 >f; jq -nc --arg a 1 --argjson b '{"c":2}' --slurpfile d f --rawfile e f '[$a, $b.c, $d, $e, $ARGS.named.a]'; jq -nc '$ARGS.positional' --args x y; jq -nc --jsonargs '$ARGS.positional' 1 '[]'; A=7 jq -n 'env.A + $ENV.A'`,
			"[\"1\",2,[5],\"5\\n\",\"1\"]\n[\"x\",\"y\"]\n[1,[]]\n\"77\"\n", 0},
		{"jq's numbers and letters", `[12345678901234567890, 1.50, "é😀"]`, `jq -ac .`, "[12345678901234567890,1.50,\"\\u00e9\\ud83d\\ude00\"]\n", 0},
		{"jq -e", "", `echo '[0,false]' >f; jq -e '.[0]' f; echo $?; jq -e '.[1]' f; echo $?; jq -e empty f; echo $?; jq -j '.[0],"a","b"' f`, "0\n0\nfalse\n1\n4\n0ab", 0},
		{"jq fails", "", `echo '{"a":1}' >f; jq .a.b f; echo $?; echo '[1' | jq .; echo $?; jq '.[' f; echo $?; jq . nope; echo $?; jq -n '"bye\n" | halt_error'`,
			"jq: expected an object but got: number (1)\n5\njq: standard input: this is not JSON: unexpected EOF\n2\njq: the query \".[\": unexpected EOF\n3\njq: open nope: no such file or directory\n2\nbye\n", 5},
		// Processes and the machine
		{"xargs", "a b\nc 'd e'\n", `cat >f; xargs -n 1 echo <f; xargs -I% echo "<%>" <f; printf 'x\000y z\000' | xargs -0 -n1 echo`,
			"a\nb\nc\nd e\n<a b>\n<c 'd e'>\nx\ny z\n", 0},
		{"xargs fails", "x\n", `xargs false`, "", 123},
		{"env", "", `env -i A=1 printenv; env -u HOME printenv HOME`, "A=1\n", 1},
		{"timeout", "", `timeout 0.1 sleep 60; echo $?; timeout 60 sh -c 'exit 3'`, "124\n", 3},
		{"date", "", `date -u -d @0 '+%Y-%m-%dT%H:%M:%S %a %j %%'; date -d '2024-02-29 12:00:00' +%s`, "1970-01-01T00:00:00 Thu 001 %\n1709208000\n", 0},
		{"kill", "", `sleep 60 & kill -TERM $!; wait; kill -0 999999999`, "kill: process 999999999: no such process\n", 1},
		{"pgrep", "", `pgrep -x no-such-name`, "", 1},
		{"which", "", `which sh | xargs basename; which nothing`, "sh\n", 1},
		{"bad signal", "", `kill -NOPE 1`, "kill: signal \"NOPE\" is not known (see --help)\n", 2},
		{"colours", "", `touch f; ls --color=auto; ls --color; ls --all=x`, "f\nf\nls: --all takes no value (see --help)\n", 2},
		{"missing argument", "", `chown root`, "chown: expected at least 2 arguments, got 1 (see --help)\n", 2},
		{"printf", "", `printf '%s-%03d\n' a 7; echo -n x; echo -e 'a\tb'`, "a-007\nxa\tb\n", 0},
		{"ip", "", `ip addr show lo | grep -c 127.0.0.1/8; ip link | grep -c '1: lo'; ip route flush all`, "1\n1\nip: \"flush\" is not supported: only show is (see --help)\n", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			cmd := command(t, dir, "sh", "-c", c.line)
			cmd.Stdin = strings.NewReader(c.stdin)
			out, _ := cmd.CombinedOutput()
			if string(out) != c.want || cmd.ProcessState.ExitCode() != c.code {
				t.Errorf("%s\n got %q, code %d\nwant %q, code %d", c.line, out, cmd.ProcessState.ExitCode(), c.want, c.code)
			}
		})
	}
}

// ps shows this test's own children with all that was asked for.
func TestPS(t *testing.T) {
	for line, want := range map[string]string{
		"ps aux":                               `(?m)^USER +PID +%CPU +%MEM +VSZ +RSS +TTY +STAT +START +TIME +COMMAND\n(.*\n)*.*sleep 61`,
		"ps -ef":                               `(?m)^USER +PID +PPID +%CPU +START +TTY +TIME +COMMAND\n(.*\n)*.*sleep 61`,
		"ps":                                   `(?m)^USER +PID +PPID +STAT +TIME +COMMAND\n(.*\n)*.*sleep 61`,
		"ps -o pid=,args= | grep ' sleep 61$'": `^ *[0-9]+ sleep 61\n`,
		"top -b -n 1":                          `(?m)PID +USER +S +%CPU +%MEM`,
	} {
		out, errs, code := do(t, t.TempDir(), "", "sh", "-c", "sleep 61 & sleep 0.05; "+line+"; kill $(pgrep -n -f '^sleep 61$'); wait 2>/dev/null; true")
		if code != 0 || !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("%s: code %d, %q, %q", line, code, out, errs)
		}
	}
}

// strace shows calls of what it starts and ends as that does.
func TestStrace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hello")
	if err := os.WriteFile(file, []byte("hi\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code := do(t, "/", "", "strace", "-f", "-e", "openat,write", filepath.Join(linkDir, "cat"), file)
	if strings.Contains(errs, "operation not permitted") {
		t.Skip("tracing is not allowed here")
	}
	if code != 0 || out != "hi\n" || !strings.Contains(errs, `openat(AT_FDCWD, "`+file+`", O_RDONLY`) {
		t.Errorf("code %d, %q, %q", code, out, errs)
	}
	if _, _, code := do(t, "/", "", "strace", "-o", "/dev/null", filepath.Join(linkDir, "sh"), "-c", "exit 5"); code != 5 {
		t.Errorf("exit code %d, want the command's 5", code)
	}
}
