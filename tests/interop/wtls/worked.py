"""A handshake computed by hand, and single datagrams, which test the decoders first."""

from __future__ import annotations

from interop.wtls.decoder import Sender

CLIENT_HELLO = bytes.fromhex(
    "c300 0000 5b01 0058 013a e5c2 a0a0 a1a2 a3a4 a5a6 a7a8 a9aa ab00 001a 0800 000e"
    "07fe 9ec5 d13a 439c ef91 a848 0252 17e2 0f59 f45b 333b 001d 0800 0100 6a17 5465"
    "7374 2052 6f6f 743b 2054 6573 7420 4f72 673b 2055 5306 0303 0602 0503 0100 0203"
)
SERVER_FLIGHT = bytes.fromhex(
    "c300 0000 1f02 001c 013a e5c2 a1b0 b1b2 b3b4 b5b6 b7b8 b9ba bb04 5e55 104e 0103"
    "0300 0203 c300 0100 d80b 00d5 00d3 0101 0201 006a 1754 6573 7420 526f 6f74 3b20"
    "5465 7374 204f 7267 3b20 5553 3a4f c880 3c31 0000 0100 6a1e 4761 7465 7761 793b"
    "2054 6573 7420 4f72 673b 2055 533b 2067 772e 7465 7374 0200 0003 0100 0100 40a2"
    "67ec da30 a0ed 277a 96ba bb3a 7e70 25ce 8178 057f f60a 2e1e 1827 d48e cee9 e5d8"
    "583f 6ded 7108 b36e 305b 9678 b482 2d4c 75ee cf8d 4076 c594 6822 83f2 d96e 6f00"
    "4076 4a3c 7a24 1170 0244 3bf4 7098 773d e081 a14b 3067 0b52 2cbb a5b2 8563 9a93"
    "d8ae 0e9f a1af 60f9 5f1c 98f2 0fd4 16ac df4f a41a f37f 1d16 86f0 ec21 e44f 28d5"
    "4ac3 0002 0003 0e00 00"
)
CLIENT_FLIGHT = bytes.fromhex(
    "c300 0100 4510 0042 0040 5eba 0034 503a 313a 075d 1188 eef3 6db5 54b3 8ab9 b05f"
    "ee3a f073 ad57 ff77 f140 b16d 39c5 8db4 c944 c658 8c1b f533 da59 19ef efdd 46f7"
    "5bd9 8027 2b35 4d58 8998 c100 0200 0101 e300 0000 2864 a52e e4c2 7700 ce59 c4c3"
    "c924 90fc 4e6a 15e5 76c7 315c 5871 bfc0 c89e 4632 8b72 b1a9 6837 3ddb 0e"
)
SERVER_FINISHED = bytes.fromhex(
    "c100 0300 0101 e300 0000 28c6 cdd0 4247 17c5 4647 8eb1 84fe 5896 efa2 557c 605b"
    "c86d 357e dee1 5519 a00f 6b7e 07ac a0a6 d2ae 9c"
)
CLIENT_DATA = bytes.fromhex(
    "e400 0100 2046 302b bc57 eb04 d594 dbaf ccb6 e469 a12c 05ec bace 3e10 055b fcd9 c870 6b71 f5"
)
BAD_RECORD_MAC = bytes.fromhex("c200020006011442fa49bd")
NO_CONNECTION = bytes.fromhex("c2ffff0006020542fa49bd")

FULL: list[tuple[Sender, bytes]] = [
    ("client", CLIENT_HELLO),
    ("server", SERVER_FLIGHT),
    ("client", CLIENT_FLIGHT),
    ("server", SERVER_FINISHED),
]

ROOT_MODULUS = int(
    "d890fc3b8159cc59bd70b052d84a5642f971380609baf3a7c454f61d67636452"
    "57243603287124f1a6fd66d326e32c4411871e321ad3fc056ffba1d01c93dc59",
    16,
)
SERVER_PRIVATE_EXPONENT = int(
    "0f08d5e9610514cf49cef85c6aced7acf8500dff5c58379b0b582b1fc754aa5c"
    "62090a3a3d6dcfa7baaf30026dfd5f282aa3ac2f46a634dbc313b5787689fb91",
    16,
)
EC_CERTIFICATE = bytes.fromhex(
    "0101 0100 6a15 4543 2052 6f6f 743b 2054 6573 7420 4f72 673b 2055 533a 4fc8 803c"
    "3100 0001 006a 1e47 6174 6577 6179 3b20 5465 7374 204f 7267 3b20 5553 3b20 6777"
    "2e74 6573 7403 0715 02c0 0e0a 9b5c 4d00 11f4 c197 4b1a 9934 d3c8 8c3d 5500 2a00"
    "e573 9e17 ec16 278f 1e68 ddbf cc90 ae69 0ecf 9035 00bc b624 ec8e 11d0 6173 b04f"
    "099d 0910 8b19 dc8a c8"
)
EC_ROOT_POINT = bytes.fromhex("03314dc9fc84a83e307d59918dc9fc38efbcb720df")
