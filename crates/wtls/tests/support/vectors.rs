//! Worked examples of WTLS conversations, records and secrets, constructed by hand from
//! WAP-261-WTLS-20010406-a (WAP Forum, "Wireless Transport Layer Security Specification", 2001) with
//! its errata SIN 100, 101 and 102. Each example names its section. The RC5 vectors are those of
//! RFC 2040, section 9.

/// §10.5.1.2: a ClientHello that offers RSA, and ECDH_ECDSA on curve 7.
pub const CLIENT_HELLO: &str = "
c300 0000 5b01 0058 013a e5c2 a0a0 a1a2
a3a4 a5a6 a7a8 a9aa ab00 001a 0800 000e
07fe 9ec5 d13a 439c ef91 a848 0252 17e2
0f59 f45b 333b 001d 0800 0100 6a17 5465
7374 2052 6f6f 743b 2054 6573 7420 4f72
673b 2055 5306 0303 0602 0503 0100 0203
";

/// §10.3: ServerHello, Certificate with a 512-bit RSA key, ServerHelloDone.
pub const SERVER_FLIGHT: &str = "
c300 0000 1f02 001c 013a e5c2 a1b0 b1b2
b3b4 b5b6 b7b8 b9ba bb04 5e55 104e 0103
0300 0203 c300 0100 d80b 00d5 00d3 0101
0201 006a 1754 6573 7420 526f 6f74 3b20
5465 7374 204f 7267 3b20 5553 3a4f c880
3c31 0000 0100 6a1e 4761 7465 7761 793b
2054 6573 7420 4f72 673b 2055 533b 2067
772e 7465 7374 0200 0003 0100 0100 40a2
67ec da30 a0ed 277a 96ba bb3a 7e70 25ce
8178 057f f60a 2e1e 1827 d48e cee9 e5d8
583f 6ded 7108 b36e 305b 9678 b482 2d4c
75ee cf8d 4076 c594 6822 83f2 d96e 6f00
4076 4a3c 7a24 1170 0244 3bf4 7098 773d
e081 a14b 3067 0b52 2cbb a5b2 8563 9a93
d8ae 0e9f a1af 60f9 5f1c 98f2 0fd4 16ac
df4f a41a f37f 1d16 86f0 ec21 e44f 28d5
4ac3 0002 0003 0e00 00
";

/// The server's modulus; its exponent is 65537.
pub const SERVER_MODULUS: &str = "
a267ecda30a0ed277a96babb3a7e7025ce8178057ff60a2e1e1827d48ecee9e5
d8583f6ded7108b36e305b9678b4822d4c75eecf8d4076c594682283f2d96e6f
";

pub const SERVER_PRIVATE_EXPONENT: &str = "
0f08d5e9610514cf49cef85c6aced7acf8500dff5c58379b0b582b1fc754aa5c
62090a3a3d6dcfa7baaf30026dfd5f282aa3ac2f46a634dbc313b5787689fb91
";

/// The authority's modulus; its exponent is 65537.
pub const CA_MODULUS: &str = "
d890fc3b8159cc59bd70b052d84a5642f971380609baf3a7c454f61d67636452
57243603287124f1a6fd66d326e32c4411871e321ad3fc056ffba1d01c93dc59
";

pub const CA_PRIVATE_EXPONENT: &str = "
0478667c7d8fd8f737a774a2b4590e139570f6731641ee773c13db4a4e7da2bb
a9d4f84c2eb45c935eb7d017e19426a121045ee7c2566e5b35f9a4257080da01
";

/// SHA-1 of the signed part of the server's certificate.
pub const CERTIFICATE_HASH: &str = "
dd75ba16e22e8d0fe40842c0ade651ee0d97bb06
";

/// §10.3: ClientKeyExchange, ChangeCipherSpec, Finished.
pub const CLIENT_FLIGHT: &str = "
c300 0100 4510 0042 0040 5eba 0034 503a
313a 075d 1188 eef3 6db5 54b3 8ab9 b05f
ee3a f073 ad57 ff77 f140 b16d 39c5 8db4
c944 c658 8c1b f533 da59 19ef efdd 46f7
5bd9 8027 2b35 4d58 8998 c100 0200 0101
e300 0000 2864 a52e e4c2 7700 ce59 c4c3
c924 90fc 4e6a 15e5 76c7 315c 5871 bfc0
c89e 4632 8b72 b1a9 6837 3ddb 0e
";

/// §10.3: ChangeCipherSpec and Finished of the server.
pub const SERVER_FINISH: &str = "
c100 0300 0101 e300 0000 28c6 cdd0 4247
17c5 4647 8eb1 84fe 5896 efa2 557c 605b
c86d 357e dee1 5519 a00f 6b7e 07ac a0a6
d2ae 9c
";

/// §9.2: "WTLS test" from the client, record 1.
pub const CLIENT_DATA_1: &str = "
e400 0100 2046 302b bc57 eb04 d594 dbaf
ccb6 e469 a12c 05ec bace 3e10 055b fcd9
c870 6b71 f5
";

/// The same in record 9, after the refresh at 8.
pub const CLIENT_DATA_9: &str = "
e400 0900 2067 f8bb c1e3 2818 cd5b 7ac4
b0b3 abb7 c050 e53a 87bf f3ea 62bb ef00
8f75 cc42 99
";

/// "WTLS reply" from the server, record 1.
pub const SERVER_DATA_1: &str = "
e400 0100 2040 815c 3739 8b90 1fd0 7ce5
0ddb 259b bb46 3385 c7b0 5bab 1555 abed
877a c914 49
";

/// §10.2: bad_record_mac about the client's record 1, as the server's record 2.
pub const ALERT_BAD_RECORD_MAC: &str = "
c200020006011442fa49bd
";

/// §10.2: no_connection about the same record.
pub const ALERT_NO_CONNECTION: &str = "
c2ffff0006020542fa49bd
";

/// §10.3: the ClientHello that resumes the session.
pub const RESUME_CLIENT_HELLO: &str = "
c300 0000 2401 0021 013a e5c3 0010 1112
1314 1516 1718 191a 1b04 5e55 104e 0000
0000 0203 0301 0002 03
";

/// ServerHello, ChangeCipherSpec, Finished.
pub const RESUME_SERVER_FLIGHT: &str = "
c300 0000 1f02 001c 013a e5c3 0120 2122
2324 2526 2728 292a 2b04 5e55 104e 0003
0300 0203 c100 0100 0101 e300 0000 2868
25ba c2b0 ab79 f758 8bb0 109f bba3 82c1
deef e855 93f3 369c ccba a081 952d 629f
6c8c a3e7 6ac6 b0
";

/// ChangeCipherSpec, Finished, and "WTLS test" as record 1.
pub const RESUME_CLIENT_FINISH: &str = "
c100 0100 0101 e300 0000 2807 ace5 9638
b535 48b2 69a4 3cf7 ede5 bf10 e784 34ba
4580 af7e dfb7 abaf cf78 61ed 1499 ca90
b5b7 a0e4 0001 0020 d64c 06d8 8048 b5da
8053 e4b7 0053 7641 d5c1 23c2 df56 fc0e
073d 8c6e 3413 00c9
";

/// One record under a cipher suite.
pub struct SuiteVector {
    pub bulk: u8,
    pub mac: u8,
    pub key: &'static str,
    pub iv: &'static str,
    pub mac_value: &'static str,
    pub fragment: &'static str,
}

/// §11.2: "WTLS test" from the client as record 9, key refresh 3, under every cipher and MAC.
pub const SUITES: &[SuiteVector] = &[
    SuiteVector {
        bulk: 0,
        mac: 2,
        key: "",
        iv: "",
        mac_value: "d55063c231deb36d012c",
        fragment: "57544c532074657374d55063c231deb36d012c",
    },
    SuiteVector {
        bulk: 1,
        mac: 2,
        key: "bad8637c21707ebecf7ff06a9e26b601",
        iv: "dbc6cc33f86240e1",
        mac_value: "d55063c231deb36d012c",
        fragment: "2efcfb38cb859429f70fea3769371a23eb06c3c6d10e9aa9",
    },
    SuiteVector {
        bulk: 2,
        mac: 2,
        key: "a47655f2bc7cd650f242c3f94c42e55c",
        iv: "dbc6cc33f86240e1",
        mac_value: "d55063c231deb36d012c",
        fragment: "6032e4890b89455ed5254c8f3260d01b28ad77653ded92fe",
    },
    SuiteVector {
        bulk: 3,
        mac: 0,
        key: "92cfc7f1208f740339923311e8159289",
        iv: "60fe6bc075b0c99f",
        mac_value: "",
        fragment: "f0cee40dd79e9960dde7b25a39b44eef",
    },
    SuiteVector {
        bulk: 3,
        mac: 1,
        key: "75b0c99f4507014538bc75f43b3e4493",
        iv: "47de305d43db93e0",
        mac_value: "d55063c231",
        fragment: "67f8bbc1e32818cd411e5d316c87a3cc",
    },
    SuiteVector {
        bulk: 3,
        mac: 2,
        key: "75b0c99f4507014538bc75f43b3e4493",
        iv: "47de305d43db93e0",
        mac_value: "d55063c231deb36d012c",
        fragment: "67f8bbc1e32818cd5b7ac4b0b3abb7c07d2e05fb44ca8152",
    },
    SuiteVector {
        bulk: 3,
        mac: 3,
        key: "75b0c99f4507014538bc75f43b3e4493",
        iv: "47de305d43db93e0",
        mac_value: "d55063c231deb36d012cafe4d4cba46ffad78ce5",
        fragment: "67f8bbc1e32818cd5b7ac4b0b3abb7c050e53a87bff3ea62bbef008f75cc4299",
    },
    SuiteVector {
        bulk: 3,
        mac: 5,
        key: "df4b532ce58131f56f94d7010a613db1",
        iv: "bdd6a88bbfdd68ee",
        mac_value: "3a4769c90e",
        fragment: "8afd55d56dd9bcd9b04e02e95b464153",
    },
    SuiteVector {
        bulk: 3,
        mac: 6,
        key: "df4b532ce58131f56f94d7010a613db1",
        iv: "bdd6a88bbfdd68ee",
        mac_value: "3a4769c90e73abc6f4a3",
        fragment: "8afd55d56dd9bcd911bcda3f0f9307ab54893561ec7a6d06",
    },
    SuiteVector {
        bulk: 3,
        mac: 7,
        key: "df4b532ce58131f56f94d7010a613db1",
        iv: "bdd6a88bbfdd68ee",
        mac_value: "3a4769c90e73abc6f4a34884cbd49fbb",
        fragment: "8afd55d56dd9bcd911bcda3f0f9307ab093eebb00a593b9055dcc5c280621cc9",
    },
    SuiteVector {
        bulk: 4,
        mac: 2,
        key: "bad8637c21707ebe",
        iv: "dbc6cc33f86240e1",
        mac_value: "d55063c231deb36d012c",
        fragment: "36901d94b80e03c8038594ed657b6dffa531316f89fe81a8",
    },
    SuiteVector {
        bulk: 5,
        mac: 2,
        key: "75b0c99f45070145",
        iv: "38bc75f43b3e4493",
        mac_value: "d55063c231deb36d012c",
        fragment: "ad9ca62b6bd21cb80c32165f61dcd783e3f4617e5fc3218e",
    },
    SuiteVector {
        bulk: 6,
        mac: 2,
        key: "75b0c99f4507014538bc75f43b3e449347de305d43db93e0",
        iv: "5e38efa423478a39",
        mac_value: "d55063c231deb36d012c",
        fragment: "88658ee44457dbb869003797178e0c53a544a96d35b2f66d",
    },
    SuiteVector {
        bulk: 7,
        mac: 2,
        key: "bad8637c21707ebecf7ff06a9e26b601",
        iv: "dbc6cc33f86240e1",
        mac_value: "d55063c231deb36d012c",
        fragment: "1d46a38f67a7969815b2a8ec49fa9b4c06e181ed3a915e56",
    },
    SuiteVector {
        bulk: 8,
        mac: 2,
        key: "a47655f2bc7cd650f242c3f94c42e55c",
        iv: "dbc6cc33f86240e1",
        mac_value: "d55063c231deb36d012c",
        fragment: "33d83d6c1edf1805b47adde5027939af33108114977b61aa",
    },
    SuiteVector {
        bulk: 9,
        mac: 2,
        key: "75b0c99f4507014538bc75f43b3e4493",
        iv: "47de305d43db93e0",
        mac_value: "d55063c231deb36d012c",
        fragment: "665b243f623100cd53b46ccc14dc45eed04ffde912e82905",
    },
    SuiteVector {
        bulk: 10,
        mac: 2,
        key: "4709077a4b5ab426744d2f43316388a0",
        iv: "dbc6cc33f86240e1",
        mac_value: "d55063c231deb36d012c",
        fragment: "d7ae93821e23ee4762658d906cf73cc32a63312917ddc618",
    },
    SuiteVector {
        bulk: 11,
        mac: 2,
        key: "4709077a4b5ab426744d2f43316388a0",
        iv: "dbc6cc33f86240e1",
        mac_value: "d55063c231deb36d012c",
        fragment: "91cf02648767eaa909ac708f43fb48f2694e7fcbcebb408b",
    },
];

/// PRF with SHA-1: secret 00..13, "test label", seed 00..1F.
pub const PRF_SHA1: &str = "
d054c80403b39ab2aa5016e4a5aa93e120f9312e93b138cebe84298e71bc26ec0fdd25fdaa0ef50243ece40fd15d08fb
";

/// The same with MD5.
pub const PRF_MD5: &str = "
995a5ce09ce9e8415cc7046f3d58add11b0047910dc66f18994a3a034cb15857a3508f89d5d76ea37f9a2699a136c22c
";

/// PRF with SHA-1: no secret, "client write IV", 0000 and both randoms of the handshake.
pub const EXPORT_IV: &str = "
ef86f5ad84b6fe09
";

/// Master secret of the RSA handshake.
pub const MASTER_RSA: &str = "
1275ffeda8151c0e7666d7dba49e3c8de7441ebe
";

/// Master secret of suite NULL with the randoms of the handshake.
pub const MASTER_NULL: &str = "
b0aa042d94e1e1566e8aa755d45f252a9242de4a
";

/// Master secret of SHARED_SECRET "0123456789abcdef".
pub const MASTER_SHARED: &str = "
ae1548d0897a781ceec5265452fdf693fe2d9033
";

/// Master secret of the RSA handshake with an MD5 suite.
pub const MASTER_RSA_MD5: &str = "
6e945fa4f88579bc37105e0a0dbda90d8bd34f75
";

/// Curve 7: the point of the scalar 01..14.
pub const ECDH_A: &str = "
02c00e0a9b5c4d0011f4c1974b1a9934d3c88c3d55
";

/// Curve 7: the point of the scalar 11..24.
pub const ECDH_B: &str = "
03713ccce0268888eb09acf0e143730e006de21c09
";

/// The shared secret of the two.
pub const ECDH_Z: &str = "
7e0f23818867bdc50473657cb5e0df7354d6dc11
";

pub const MASTER_ECDH: &str = "
590fcba97271dee7ada0c4221b8590b33eb026a2
";

/// Curve 7, key 01..14, SHA-1 of "abc", nonce 21..34.
pub const ECDSA_R: &str = "
001db6c9880425bb5d2ba097eec8859d45ebf3870b
";

pub const ECDSA_S: &str = "
004ddcc1702d98f98390160790b60f3446a402d7d1
";

/// §10.5.2: a certificate for the first point, signed by ECDSA.
pub const EC_CERTIFICATE: &str = "
0101 0100 6a15 4543 2052 6f6f 743b 2054
6573 7420 4f72 673b 2055 533a 4fc8 803c
3100 0001 006a 1e47 6174 6577 6179 3b20
5465 7374 204f 7267 3b20 5553 3b20 6777
2e74 6573 7403 0715 02c0 0e0a 9b5c 4d00
11f4 c197 4b1a 9934 d3c8 8c3d 5500 2a00
e573 9e17 ec16 278f 1e68 ddbf cc90 ae69
0ecf 9035 00bc b624 ec8e 11d0 6173 b04f
099d 0910 8b19 dc8a c8
";

/// The authority's point, on curve 7.
pub const EC_CA_POINT: &str = "
03314dc9fc84a83e307d59918dc9fc38efbcb720df
";
