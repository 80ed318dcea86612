from antiphon.cli import main

main()
