// Public-key operations of Go's standard library, as its TLS server calls them: the mean CPU time of one in
// microseconds, repeated for half a second. The argument is the operation's name in profiles.
package main

import (
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/mlkem"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"syscall"
)

const wholeUs = 500_000

func usedUs() int64 {
	var used syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return (used.Utime.Sec+used.Stime.Sec)*1_000_000 + used.Utime.Usec + used.Stime.Usec
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

var digest = sha256.Sum256([]byte("signed"))

func sign(algorithm, parameters string) func() {
	switch algorithm {
	case "rsa":
		key := must(rsa.GenerateKey(rand.Reader, must(strconv.Atoi(strings.TrimPrefix(parameters, "rsa")))))
		return func() { must(rsa.SignPSS(rand.Reader, key, crypto.SHA256, digest[:], nil)) }
	case "eddsa":
		_, key, _ := ed25519.GenerateKey(rand.Reader)
		return func() { ed25519.Sign(key, digest[:]) }
	}
	curve := map[string]elliptic.Curve{"p256": elliptic.P256(), "p384": elliptic.P384(), "p521": elliptic.P521()}
	key := must(ecdsa.GenerateKey(curve[parameters], rand.Reader))
	return func() { must(key.Sign(rand.Reader, digest[:], crypto.SHA256)) }
}

// decrypt is the server's part of an RSA key exchange.
func decrypt(parameters string) func() {
	key := must(rsa.GenerateKey(rand.Reader, must(strconv.Atoi(strings.TrimPrefix(parameters, "rsa")))))
	sent, premaster := must(rsa.EncryptPKCS1v15(rand.Reader, &key.PublicKey, make([]byte, 48))), make([]byte, 48)
	return func() {
		if err := rsa.DecryptPKCS1v15SessionKey(rand.Reader, key, sent, premaster); err != nil {
			log.Fatal(err)
		}
	}
}

func agree(operation, parameters string) func() {
	curve := map[string]ecdh.Curve{"x25519": ecdh.X25519(), "p256": ecdh.P256(), "p384": ecdh.P384()}[parameters]
	key, peer := must(curve.GenerateKey(rand.Reader)), must(curve.GenerateKey(rand.Reader)).PublicKey()
	if operation == "keygen" {
		return func() { must(curve.GenerateKey(rand.Reader)) }
	}
	return func() { must(key.ECDH(peer)) }
}

func encapsulate(algorithm string) func() {
	sent := must(mlkem.GenerateKey768()).EncapsulationKey().Bytes()
	plain := func() { must(mlkem.NewEncapsulationKey768(sent)).Encapsulate() }
	if algorithm == "mlkem" {
		return plain
	}
	keygen, derive := agree("keygen", "x25519"), agree("derive", "x25519")
	return func() { plain(); keygen(); derive() }
}

func main() {
	what := strings.Fields(os.Args[1])
	var call func()
	switch what[0] {
	case "sign":
		call = sign(what[1], what[2])
	case "decrypt":
		call = decrypt(what[2])
	case "encapsulate":
		call = encapsulate(what[1])
	default:
		call = agree(what[0], what[2])
	}
	call()
	begun, calls := usedUs(), 0
	for usedUs()-begun < wholeUs {
		call()
		calls++
	}
	fmt.Println(float64(usedUs()-begun) / float64(calls))
}
